import { Tabs as Radix } from "radix-ui";
import type { ReactNode } from "react";

export interface Tab {
  value: string;
  label: ReactNode;
  content: ReactNode;
}

/** Several views of one thing; the arrow keys go from one to the next. */
export function Tabs({ tabs, value, onChange, label }: { tabs: Tab[]; value: string; onChange: (value: string) => void; label: string }) {
  return (
    <Radix.Root value={value} onValueChange={onChange}>
      <Radix.List aria-label={label} className="mb-4 flex flex-wrap gap-1 border-b border-line">
        {tabs.map((tab) => (
          <Radix.Trigger key={tab.value} value={tab.value} className="-mb-px min-h-10 border-b-2 border-transparent px-3 py-1.5 font-semibold text-soft hover:text-ink data-[state=active]:border-accent data-[state=active]:text-ink">
            {tab.label}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {tabs.map((tab) => <Radix.Content key={tab.value} value={tab.value}>{tab.content}</Radix.Content>)}
    </Radix.Root>
  );
}
