import { createContext, useContext } from "react";

import type { Me } from "./api/types";

const Context = createContext<Me | null>(null);

export const MeProvider = Context.Provider;

/** Who looks, and what they may do. */
export function useMe(): Me {
  const me = useContext(Context);
  if (me === null) throw new Error("useMe stands outside of its provider");
  return me;
}

/** Why this user cannot trigger work; null when they can. */
export function useRefusal(): string | null {
  const { rights } = useMe();
  return rights.actions ? null : (rights.actions_reason ?? "You may not trigger the DAG that does this.");
}

/** Why this user may not see rows of tables of a connection; null when they may. */
export function useRows(connection: string | null): string | null {
  const { rights } = useMe();
  const open = rights.rows && (rights.rows_connections === undefined || rights.rows_connections.includes(connection));
  return open ? null : (rights.rows_reason ?? "Values of rows need a right of their own.");
}
