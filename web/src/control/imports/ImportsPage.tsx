import { PageHead } from "@/control/page/PageHead";
import { OperationList } from "@/control/operations/OperationRow";
import { Card } from "@/design/Card";
import { DropFiles } from "./DropFiles";
import { TransferRow } from "./TransferRow";
import { UploadList } from "./UploadList";
import { useTransfers, type Transfer } from "./transfers";

/** WARC and WACZ files of elsewhere come into the archive: dropped, sent in pieces, imported, searchable. */
export function ImportsPage() {
  const list = useTransfers();
  return (
    <>
      <PageHead title="Imports">WARC and WACZ files that other tools made. A transfer that breaks goes on where it was, also after a restart of this browser or of the server.</PageHead>
      <div className="space-y-4">
        <Card title="Add files"><DropFiles /></Card>
        <Transfers title="On their way" list={list.filter((one) => !one.isOver)} />
        <Transfers title="Finished in this window" list={list.filter((one) => one.isOver)} />
        <Card title="Imports"><OperationList kinds={["import"]} empty="No import is under way or kept in this list. An import starts by itself when a file has arrived; what became of each file is said below." /></Card>
        <Card title="Uploaded files"><UploadList /></Card>
      </div>
    </>
  );
}

function Transfers({ title, list }: { title: string; list: Transfer[] }) {
  if (list.length === 0) return null;
  return <Card title={title}><ul className="divide-y divide-line">{list.map((one) => <TransferRow key={one.key} transfer={one} />)}</ul></Card>;
}
