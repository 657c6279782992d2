using System;
using System.Collections;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Reflection;
using System.Text;
using Newtonsoft.Json;

namespace Ranktree
{
    /// <summary>
    /// How requests and answers are written: JSON, paths and queries. Knows nothing of connections.
    /// </summary>
    internal static class Json
    {
        private static readonly JsonSerializerSettings Settings = new JsonSerializerSettings
        {
            NullValueHandling = NullValueHandling.Ignore,
            // What callers keep is theirs: text that looks like a time stays text.
            DateParseHandling = DateParseHandling.None,
            Culture = CultureInfo.InvariantCulture,
        };

        public static readonly JsonSerializer Serializer = JsonSerializer.Create(Settings);

        public static byte[] Write(object value) =>
            Encoding.UTF8.GetBytes(JsonConvert.SerializeObject(value, Formatting.None, Settings));

        public static T Read<T>(string text) => JsonConvert.DeserializeObject<T>(text, Settings);

        public static T TryRead<T>(string text)
            where T : class
        {
            try
            {
                return Read<T>(text);
            }
            catch (JsonException)
            {
                return null;
            }
        }

        /// <summary>A path of the API.</summary>
        public static string Path(params string[] parts) => "/v1/" + string.Join("/", parts.Select(Segment));

        private static string Segment(string part)
        {
            if (part == "." || part == "..")
            {
                // `Uri` takes them for folders, also where they are encoded.
                throw new ArgumentException($"{part} cannot be part of a path; WriteManyAsync and LookupAsync take such members");
            }
            return Uri.EscapeDataString(part);
        }

        /// <summary>The parameters of a query that are given, encoded.</summary>
        public static List<KeyValuePair<string, string>> Query(params object[] queries)
        {
            var found = new List<KeyValuePair<string, string>>();
            foreach (var query in queries.Where(query => query != null))
            {
                foreach (var property in query.GetType().GetProperties(BindingFlags.Public | BindingFlags.Instance))
                {
                    var value = property.GetValue(query);
                    if (value != null)
                    {
                        var name = property.GetCustomAttribute<JsonPropertyAttribute>().PropertyName;
                        found.Add(new KeyValuePair<string, string>(name, Word(value)));
                    }
                }
            }
            return found;
        }

        private static string Word(object value)
        {
            if (value is string text)
            {
                return Uri.EscapeDataString(text);
            }
            if (value is bool flag)
            {
                return flag ? "true" : "false";
            }
            if (value is double number)
            {
                return number.ToString("R", CultureInfo.InvariantCulture);
            }
            if (value is IEnumerable list)
            {
                // A comma within a value is encoded, and one between values is not.
                return string.Join(",", list.Cast<object>().Select(Word));
            }
            return Convert.ToString(value, CultureInfo.InvariantCulture);
        }
    }
}
