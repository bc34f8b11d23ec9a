/** The title of the browser's tab: what the page is about, and Airflow's own again when the page is left. */

import { useEffect } from "react";

export function useTitle(about: string): void {
  useEffect(() => {
    const before = document.title;
    document.title = `${about} - Lance`;
    return () => {
      document.title = before;
    };
  }, [about]);
}
