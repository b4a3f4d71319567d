import { useState, type ReactNode } from "react";
import { Button } from "@/design/Button";
import { Card } from "@/design/Card";
import { t } from "@/language/control/common";

/** The same figures as a chart or as a table, whichever the reader takes. */
export function ChartOrTable({ title, actions, chart, table, className = "" }: { title: string; actions?: ReactNode; chart: ReactNode; table: ReactNode; className?: string }) {
  const [isTable, show] = useState(false);
  return (
    <Card title={title} className={className} actions={<>{actions}<Button aria-pressed={isTable} aria-label={t("asTableOf", { title })} onClick={() => show(!isTable)}>{t("asTable")}</Button></>}>
      {isTable ? table : chart}
    </Card>
  );
}
