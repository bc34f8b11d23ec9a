export function NoPolicy() {
  return (
    <div className="notice">
      <strong>No policy is configured.</strong>
      <span>
        A policy says what the tables shall look like and what upkeep may cost. Write a <code>lance_policy.yaml</code>, and name it in Airflow's
        configuration: <code>[lance] pages_policy = /path/to/lance_policy.yaml</code>.
      </span>
      <span className="soft">The tables and their pages work without one.</span>
    </div>
  );
}
