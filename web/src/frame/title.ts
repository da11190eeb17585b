/** The document's title: what the page shows, before the name. A running job also puts its percentage there. */
import { useEffect } from "react";

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Stationmaster`;
  }, [title]);
}
