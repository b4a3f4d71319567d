import { room } from "../room";

/** Why a queued run has not started. */
export const t = room("waits", {
  "title.contact": "Waiting for your contact.",
  "title.worker": "Waiting: no worker is running.",
  "title.busy": "Waiting for a free worker.",
  "title.turn": "Waiting for its turn.",
  "title.disk": "Waiting for free disk space.",
  "title.source": "Waiting: its source is disabled.",
  "title.machine": "Waiting for its machine.",
  "title.time": "Waiting for its time.",
  contact: "No site is requested until a contact is set: every request names it, so that site owners can reach you. Enter your e-mail or web address and check the website; the run then starts by itself.",
  worker: "This server was started without a worker. {serve} runs one beside the server; {start} starts one on another machine. The run then starts by itself.",
  busy: "The run starts when a worker has finished another one.",
  turn: "The run starts within seconds.",
  disk: "The disk has too little free space for new captures. Free some space; the run then starts by itself.",
  source: "Enable the source to start the run.",
  "do.contact": "Enter your contact",
  "do.disk": "Storage",
  "do.source": "Open the source",
});
