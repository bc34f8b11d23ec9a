import { createContext, useCallback, useContext, useMemo, useState, type ReactNode } from "react";

import { Button } from "./button";

type Say = (text: ReactNode) => void;

const Context = createContext<Say>(() => undefined);

export function useSay(): Say {
  return useContext(Context);
}

/** Short messages about what has just happened. They stay until they are closed: a link in them can be followed in peace. */
export function Toasts({ children }: { children: ReactNode }) {
  const [items, setItems] = useState<readonly { readonly id: number; readonly text: ReactNode }[]>([]);
  const say = useCallback<Say>((text) => setItems((old) => [...old.slice(-2), { id: Date.now() + Math.random(), text }]), []);
  const list = useMemo(() => items, [items]);
  return (
    <Context.Provider value={say}>
      {children}
      <div className="toasts" role="status" aria-live="polite">
        {list.map((item) => (
          <div key={item.id} className="notice good">
            <span>{item.text}</span>
            <Button kind="quiet" label="Close this message" onClick={() => setItems((old) => old.filter((one) => one.id !== item.id))}>
              ×
            </Button>
          </div>
        ))}
      </div>
    </Context.Provider>
  );
}
