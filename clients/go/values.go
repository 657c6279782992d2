package ranktree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Ptr returns a pointer to a value, for fields that may be absent.
func Ptr[T any](value T) *T { return &value }

// Score has an integer for each key of its board: Score{1200}, or Score{1200, 90000}. All are exact.
type Score []int64

// MarshalJSON writes a score of one key as an integer, and others as an array.
func (s Score) MarshalJSON() ([]byte, error) {
	if len(s) == 1 {
		return strconv.AppendInt(nil, s[0], 10), nil
	}
	return json.Marshal([]int64(s))
}

// UnmarshalJSON reads an integer or an array. Integers beyond 2^53 come as strings.
func (s *Score) UnmarshalJSON(text []byte) error {
	if bytes.Equal(text, []byte("null")) {
		*s = nil
		return nil
	}
	if len(text) > 0 && text[0] == '[' {
		var keys []Integer
		if err := json.Unmarshal(text, &keys); err != nil {
			return err
		}
		*s = make(Score, len(keys))
		for at, key := range keys {
			(*s)[at] = int64(key)
		}
		return nil
	}
	var key Integer
	if err := json.Unmarshal(text, &key); err != nil {
		return err
	}
	*s = Score{int64(key)}
	return nil
}

func (s Score) text() string {
	var text []byte
	for at, key := range s {
		if at > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, key, 10)
	}
	return string(text)
}

// Integer is an int64 of an answer, which comes as a string beyond 2^53.
type Integer int64

// UnmarshalJSON reads an integer, or the same as a string.
func (i *Integer) UnmarshalJSON(text []byte) error {
	if bytes.Equal(text, []byte("null")) {
		return nil
	}
	value, err := strconv.ParseInt(string(bytes.Trim(text, `"`)), 10, 64)
	if err != nil {
		return fmt.Errorf("not an integer of 64 bits: %s", text)
	}
	*i = Integer(value)
	return nil
}

// Season says when a board's seasons begin: at fixed intervals, or each when it is opened.
type Season struct {
	// Each season is opened by [Client.OpenSeason]; Starts and Every say nothing then.
	Manual bool
	Starts time.Time
	// How long each season is: a whole number and one of s, m, h, d and w.
	Every string
}

type season struct {
	Starts time.Time `json:"starts"`
	Every  string    `json:"every"`
}

// MarshalJSON writes "manual", or an object.
func (s Season) MarshalJSON() ([]byte, error) {
	if s.Manual {
		return []byte(`"manual"`), nil
	}
	return json.Marshal(season{s.Starts, s.Every})
}

// UnmarshalJSON reads "manual", or an object.
func (s *Season) UnmarshalJSON(text []byte) error {
	if bytes.Equal(text, []byte(`"manual"`)) {
		*s = Season{Manual: true}
		return nil
	}
	var read season
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*s = Season{Starts: read.Starts, Every: read.Every}
	return nil
}
