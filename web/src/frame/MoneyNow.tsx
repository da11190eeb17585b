import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useEffect } from "react";
import { overviewQuery } from "~/api/overview";
import { progressToShow } from "~/frame/progress";
import { setProgressInIcon, setProgressInTitle } from "~/frame/title";
import { dollars, dollarsPerHour } from "~/text/format";
import styles from "./MoneyNow.module.css";

/** The money that is being spent now and was spent today: always on screen. Also keeps the title's percentage. */
export function MoneyNow() {
  const { data } = useQuery(overviewQuery);
  const { job } = useParams({ strict: false });
  const progress = progressToShow(data?.rows ?? [], job ?? null);
  useEffect(() => {
    setProgressInTitle(progress.text);
    setProgressInIcon(progress.percent);
  }, [progress.text, progress.percent]);
  useEffect(
    () => () => {
      setProgressInTitle("");
      setProgressInIcon(null);
    },
    [],
  );

  const spent = data?.summary;
  const isSpending = (spent?.price_per_hour_usd ?? 0) > 0;
  return (
    <Link to="/money" className={styles.money}>
      <span className="visually-hidden">Money: </span>
      <span className={isSpending ? styles.spending : undefined}>
        {dollarsPerHour(spent?.price_per_hour_usd)}
        <span className={styles.word}> now</span>
      </span>
      <span>
        {dollars(spent?.spent_today_usd)}
        <span className={styles.word}> today</span>
      </span>
    </Link>
  );
}
