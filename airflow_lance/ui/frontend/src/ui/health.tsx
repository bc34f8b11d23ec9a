import type { HealthScore } from "../api/types";

export type Grade = "good" | "warn" | "bad";

export function gradeOf(score: number): Grade {
  return score >= 80 ? "good" : score >= 50 ? "warn" : "bad";
}

/** What the score is about: where the files were not compared with the manifest it is no health, and nothing of it is green. */
export function nameOf(health: HealthScore): string {
  return health.unchecked === null ? "Health" : "Layout";
}

export function Health({ health, large = false }: { health: HealthScore; large?: boolean }) {
  const { score, unchecked } = health;
  const grade = unchecked !== null && gradeOf(score) === "good" ? "soft" : gradeOf(score);
  return (
    <span className={["health", large ? "large" : "", unchecked === null ? "" : "unchecked"].filter(Boolean).join(" ")} role="img" aria-label={`${nameOf(health)} ${score} of 100`}>
      {unchecked === null ? null : <span className="small soft">layout</span>}
      <b className={grade}>{score}</b>
      <span className="bar">
        <i className={`fill-${grade}`} style={{ width: `${score}%` }} />
      </span>
    </span>
  );
}
