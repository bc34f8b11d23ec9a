/** The pages inside Airflow: it loads this file once and looks for the component under the name of the plugin. */

import { App } from "./app";
import type { AppProps } from "./lib/host";
import { adoptStyles } from "./style";

function Lance(props: AppProps) {
  adoptStyles();
  return <App {...props} />;
}

Object.assign(globalThis, { Lance, AirflowPlugin: Lance });
