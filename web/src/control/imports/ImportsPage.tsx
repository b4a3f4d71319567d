import { PageHead } from "@/control/page/PageHead";
import { OperationList } from "@/control/operations/OperationRow";
import { Card } from "@/design/Card";
import { DropFiles } from "./DropFiles";
import { TransferRow } from "./TransferRow";
import { UploadList } from "./UploadList";
import { useTransfers, type Transfer } from "./transfers";
import { t } from "@/language/control/imports";

/** WARC and WACZ files of elsewhere: dropped, sent in pieces, imported. A file is listed once: while it uploads, then as an import, or as one that needs a person. */
export function ImportsPage() {
  const list = useTransfers();
  return (
    <>
      <PageHead title={t("imports")}>{t("intro")}</PageHead>
      <div className="space-y-4">
        <Card title={t("add")}><DropFiles /></Card>
        <Transfers list={list.filter((one) => one.state !== "sent")} />
        <Card title={t("imports")}><OperationList kinds={["import"]} empty={t("none")} /></Card>
        <UploadList />
      </div>
    </>
  );
}

function Transfers({ list }: { list: Transfer[] }) {
  if (list.length === 0) return null;
  return <Card title={t("uploading")}><ul className="divide-y divide-line">{list.map((one) => <TransferRow key={one.key} transfer={one} />)}</ul></Card>;
}
