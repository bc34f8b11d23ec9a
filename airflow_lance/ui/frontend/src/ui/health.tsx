export type Grade = "good" | "warn" | "bad";

export function gradeOf(score: number): Grade {
  return score >= 80 ? "good" : score >= 50 ? "warn" : "bad";
}

export function Health({ score, large = false }: { score: number; large?: boolean }) {
  const grade = gradeOf(score);
  return (
    <span className={large ? "health large" : "health"} role="img" aria-label={`Health ${score} of 100`}>
      <b className={grade}>{score}</b>
      <span className="bar">
        <i className={`fill-${grade}`} style={{ width: `${score}%` }} />
      </span>
    </span>
  );
}
