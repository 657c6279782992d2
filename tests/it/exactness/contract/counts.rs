//! Ranks of scores, scores at ranks, and counts between scores, compared with the model.

use serde_json::{Value, json};

use super::reads::{Asked, Check, Reader, bounds, check_percentile, same, score_json};
use super::world::{score_of, shard_of};
use crate::support::random::Random;

/// As queries have scores.
fn score_text(score: &[i64]) -> String {
    score.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

/// Names of counts, with what they are.
fn counts(answer: &Value, expected: &[(&str, usize)], about: &str) -> Check {
    let found: Value = expected.iter().map(|(name, _)| ((*name).to_owned(), answer[*name].clone())).collect();
    let expected: Value = expected.iter().map(|(name, count)| ((*name).to_owned(), json!(count))).collect();
    same(&found, &expected, about)
}

/// The rank of a score, and how many entries are better, tied and worse.
fn standing(
    answer: &Value,
    (better, tied, worse): (usize, usize, usize),
    total: usize,
    about: &str,
) -> Check {
    let expected =
        [("rank", better + 1), ("better", better), ("tied", tied), ("worse", worse), ("total", total)];
    counts(answer, &expected, about)
}

impl Reader<'_> {
    /// Ranks of scores, exact and from summaries, with each shard's share.
    pub fn check_ranks(&self, asked: &Asked<'_>, random: &mut Random) -> Check {
        let keys = asked.board.rules.keys.len();
        let mut scores: Vec<Vec<i64>> = Vec::new();
        for _ in 0..4 {
            scores.push((0..keys).map(|_| random.score(30) - 5).collect());
        }
        scores.extend(
            asked.shown.iter().filter(|_| random.below(8) == 0).map(|(_, entry)| entry.score.clone()),
        );
        let check = |answer: &Value, score: &Vec<i64>, path: &str| {
            let (better, tied, worse) = asked.standing(score);
            let total = asked.shown.len();
            same(&answer["score"], &score_json(score), path)?;
            standing(answer, (better, tied, worse), total, path)
        };
        let shards = |answer: &Value, score: &Vec<i64>, path: &str| {
            let mut expected = Vec::new();
            for shard in 0..self.world.shards {
                let of_shard = asked.shown.iter().filter(|(id, _)| shard_of(id, self.world.shards) == shard);
                let of_shard: Vec<_> = of_shard.map(|(id, entry)| (*id, *entry)).collect();
                let (better, tied, _) = Asked { shown: &of_shard, ..*asked }.standing(score);
                expected
                    .push(json!({"shard": shard, "better": better, "tied": tied, "total": of_shard.len()}));
            }
            same(&answer["shards"], &json!(expected), path)
        };
        let path = asked.path("ranks:of");
        let list: Vec<Value> = scores.iter().map(|score| score_json(score)).collect();
        let answer = self.post(&path, &json!({ "scores": list }))?;
        let head = json!([answer["board"], answer["window"], answer["total"]]);
        same(&head, &json!([asked.name, asked.instance, asked.shown.len()]), &path)?;
        let ranks = answer["ranks"].as_array().ok_or_else(|| format!("{path}: {answer}"))?;
        same(&json!(ranks.len()), &json!(scores.len()), &path)?;
        for (answer, score) in ranks.iter().zip(&scores) {
            check(answer, score, &path)?;
            shards(answer, score, &path)?;
        }
        let score = random.pick(&scores);
        let path = asked.path(&format!("rank?score={}", score_text(score)));
        let answer = self.get(&path)?;
        check(&answer, score, &path)?;
        shards(&answer, score, &path)?;
        // Few entries, at the moment that is waited for: no error is left.
        let path = asked.path(&format!("rank?accuracy=approx&score={}", score_text(score)));
        let answer = self.get(&path)?;
        check(&answer, score, &path)?;
        same(&answer["rank_error"], &json!(0), &path)
    }

    /// Scores at ranks, positions and percentiles.
    pub fn check_places(&self, asked: &Asked<'_>, random: &mut Random) -> Check {
        let total = asked.shown.len();
        let check = |answer: &Value, index: usize, path: &str| {
            let (_, entry) = asked.shown[index];
            let (better, tied, worse) = asked.standing(&entry.score);
            same(&answer["score"], &score_json(&entry.score), path)?;
            check_percentile(answer, worse, total)?;
            standing(answer, (better, tied, worse), total, path)
        };
        for name in ["rank", "position"] {
            let place = 1 + random.index(total + 1);
            let path = asked.path(&format!("score?{name}={place}"));
            if place > total {
                self.refused(&path, 404, "unknown_position")?;
            } else {
                check(&self.get(&path)?, place - 1, &path)?;
            }
        }
        // In thousandths of all: the lowest score that is better than so many, or else the best one.
        let at = |thousandths: usize| {
            let reaches = |index: &usize| {
                let (.., worse) = asked.standing(&asked.shown[*index].1.score);
                1_000 * worse >= thousandths * total
            };
            (0..total).rev().find(reaches).or((total > 0).then_some(0))
        };
        let wanted: Vec<usize> =
            [0, 1_000, 500].into_iter().chain((0..3).map(|_| random.index(1_001))).collect();
        let text = |thousandths: &usize| format!("{}.{}", thousandths / 10, thousandths % 10);
        let texts: Vec<String> = wanted.iter().map(text).collect();
        let path = asked.path(&format!("percentiles?p={}", texts.join(",")));
        let answer = self.get(&path)?;
        for (number, thousandths) in wanted.iter().enumerate() {
            let found = &answer["percentiles"][number];
            match at(*thousandths) {
                Some(index) => check(found, index, &path)?,
                None => same(&found["score"], &Value::Null, &path)?,
            }
        }
        let thousandths = *random.pick(&wanted);
        let path = asked.path(&format!("score?percentile={}", text(&thousandths)));
        match at(thousandths) {
            Some(index) => check(&self.get(&path)?, index, &path),
            None => self.refused(&path, 404, "unknown_position"),
        }
    }

    /// How many there are between scores.
    pub fn check_spread(&self, asked: &Asked<'_>, random: &mut Random) -> Check {
        let within = |min: i64, max: i64| {
            asked.shown.iter().filter(|(_, entry)| (min..=max).contains(&entry.score[0])).count()
        };
        let (min, max) = bounds(asked, random);
        let path = asked.path(&format!("count?min={min}&max={max}"));
        counts(&self.get(&path)?, &[("count", within(min, max)), ("total", asked.shown.len())], &path)?;
        let path = asked.path("count");
        counts(&self.get(&path)?, &[("count", asked.shown.len())], &path)?;

        let min = min.min(1_000);
        let (first, second) = (min + 1 + random.score(6), min + 8 + random.score(6));
        let last = max.max(second).saturating_add(1);
        let path = asked.path(&format!("histogram?edges={min},{first},{second},{last}"));
        let answer = self.get(&path)?;
        let bucket = |min: i64, max: i64| {
            let [from, to] = [min, max].map(|bound| score_json(&[bound]));
            json!({ "min": from, "max": to, "count": within(min, max) })
        };
        let buckets = [bucket(min, first - 1), bucket(first, second - 1), bucket(second, last)];
        let expected = json!(buckets);
        same(&answer["buckets"], &expected, &path)?;
        let above = asked.shown.iter().filter(|(_, entry)| entry.score[0] > last).count();
        let outside = [("below", within(i64::MIN, min - 1)), ("above", above)];
        counts(&answer, &outside, &path)?;

        let wanted = 1 + random.index(9);
        let path = asked.path(&format!("histogram?buckets={wanted}"));
        let answer = self.get(&path)?;
        counts(&answer, &[("below", 0), ("above", 0), ("total", asked.shown.len())], &path)?;
        let buckets = answer["buckets"].as_array().ok_or_else(|| format!("{path}: {answer}"))?;
        let keys = || asked.shown.iter().map(|(_, entry)| entry.score[0]);
        let bound = |bucket: &Value, name: &str| score_of(&bucket[name])[0];
        let ends = buckets.first().zip(buckets.last());
        let ends = ends.map(|(first, last)| (bound(first, "min"), bound(last, "max")));
        if buckets.len() > wanted || ends != keys().min().zip(keys().max()) {
            return Err(format!("{path}: other bounds: {answer}"));
        }
        for (number, bucket) in buckets.iter().enumerate() {
            let (min, max) = (bound(bucket, "min"), bound(bucket, "max"));
            let follows = number == 0 || bound(&buckets[number - 1], "max") + 1 == min;
            if !follows || bucket["count"] != json!(within(min, max)) {
                return Err(format!("{path}: bucket {number}: {answer}"));
            }
        }
        Ok(())
    }
}
