import { PageHead } from "@/control/page/PageHead";
import { OperationList } from "@/control/operations/OperationRow";
import { Card } from "@/design/Card";
import { DropFiles } from "./DropFiles";
import { TransferRow } from "./TransferRow";
import { UploadList } from "./UploadList";
import { useTransfers, type Transfer } from "./transfers";

/** WARC and WACZ files of elsewhere: dropped, sent in pieces, imported. A file is listed once: while it uploads, then as an import, or as one that needs a person. */
export function ImportsPage() {
  const list = useTransfers();
  return (
    <>
      <PageHead title="Imports">WARC and WACZ files that other tools made. A transfer that breaks goes on where it was, also after a restart of this browser or of the server.</PageHead>
      <div className="space-y-4">
        <Card title="Add files"><DropFiles /></Card>
        <Transfers list={list.filter((one) => one.state !== "sent")} />
        <Card title="Imports"><OperationList kinds={["import"]} empty="No imports yet. An import starts by itself when its file has arrived." /></Card>
        <UploadList />
      </div>
    </>
  );
}

function Transfers({ list }: { list: Transfer[] }) {
  if (list.length === 0) return null;
  return <Card title="Uploading"><ul className="divide-y divide-line">{list.map((one) => <TransferRow key={one.key} transfer={one} />)}</ul></Card>;
}
