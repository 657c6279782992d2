using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using Newtonsoft.Json;

namespace Ranktree
{
    /// <summary>A score: an integer for each key of its board, exact. A `long` is one of one key.</summary>
    [JsonConverter(typeof(ScoreConverter))]
    public sealed class Score : IEquatable<Score>
    {
        private readonly long[] keys;

        public Score(params long[] keys)
        {
            this.keys = (long[])keys.Clone();
        }

        public int Count => keys.Length;

        public long this[int key] => keys[key];

        public static implicit operator Score(long key) => new Score(key);

        /// <summary>The first key: all there is on boards of one.</summary>
        public static explicit operator long(Score score) => score.keys[0];

        public bool Equals(Score other) => other != null && keys.SequenceEqual(other.keys);

        public override bool Equals(object other) => Equals(other as Score);

        public override int GetHashCode() => keys.Aggregate(17, (hash, key) => hash * 31 + key.GetHashCode());

        /// <summary>`1200`, or `1200,90000`.</summary>
        public override string ToString() =>
            string.Join(",", keys.Select(key => key.ToString(CultureInfo.InvariantCulture)));
    }

    /// <summary>Writes a score of one key as an integer, and others as an array.</summary>
    public sealed class ScoreConverter : JsonConverter
    {
        public override bool CanConvert(Type type) => type == typeof(Score);

        public override void WriteJson(JsonWriter writer, object value, JsonSerializer serializer)
        {
            var score = (Score)value;
            if (score.Count != 1)
            {
                writer.WriteStartArray();
            }
            for (var key = 0; key < score.Count; key++)
            {
                writer.WriteValue(score[key]);
            }
            if (score.Count != 1)
            {
                writer.WriteEndArray();
            }
        }

        public override object ReadJson(JsonReader reader, Type type, object known, JsonSerializer serializer)
        {
            switch (reader.TokenType)
            {
                case JsonToken.Null:
                    return null;
                case JsonToken.StartArray:
                    return new Score(serializer.Deserialize<List<long>>(reader).ToArray());
                default:
                    // Beyond 2^53 it is a string.
                    return new Score(Convert.ToInt64(reader.Value, CultureInfo.InvariantCulture));
            }
        }
    }

    /// <summary>When a board's seasons begin: at fixed intervals, or each when it is opened.</summary>
    [JsonConverter(typeof(SeasonConverter))]
    public sealed class Season
    {
        /// <summary>Each season is opened by `OpenSeasonAsync`.</summary>
        public static readonly Season Manual = new Season();

        private Season()
        {
        }

        /// <summary>`every` is a whole number and one of `s`, `m`, `h`, `d` and `w`.</summary>
        public Season(DateTimeOffset starts, string every)
        {
            Starts = starts;
            Every = every ?? throw new ArgumentNullException(nameof(every));
        }

        public bool IsManual => Every == null;

        public DateTimeOffset Starts { get; }

        public string Every { get; }
    }

    public sealed class SeasonConverter : JsonConverter
    {
        private sealed class Fixed
        {
            [JsonProperty("starts")] public DateTimeOffset Starts { get; set; }
            [JsonProperty("every")] public string Every { get; set; }
        }

        public override bool CanConvert(Type type) => type == typeof(Season);

        public override void WriteJson(JsonWriter writer, object value, JsonSerializer serializer)
        {
            var season = (Season)value;
            if (season.IsManual)
            {
                writer.WriteValue("manual");
            }
            else
            {
                serializer.Serialize(writer, new Fixed { Starts = season.Starts, Every = season.Every });
            }
        }

        public override object ReadJson(JsonReader reader, Type type, object known, JsonSerializer serializer)
        {
            switch (reader.TokenType)
            {
                case JsonToken.Null:
                    return null;
                case JsonToken.String:
                    return Season.Manual;
                default:
                    var read = serializer.Deserialize<Fixed>(reader);
                    return new Season(read.Starts, read.Every);
            }
        }
    }
}
