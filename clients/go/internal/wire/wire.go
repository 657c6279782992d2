// Package wire is what both ways to the service share.
package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"
)

// PauseMax is the longest pause between tries.
const PauseMax = 2 * time.Second

const pauseMin = 50 * time.Millisecond

// Pause is how long to wait after a try, counted from 0.
func Pause(number int) time.Duration {
	longest := min(PauseMax, pauseMin<<min(number, 16))
	// Spread, so that clients that failed at the same moment do not come back at the same moment.
	return longest/2 + time.Duration(rand.Int64N(int64(longest/2)))
}

// Sleep waits, unless the context ends before.
func Sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Encode writes compact JSON.
func Encode(value any) ([]byte, error) {
	var written bytes.Buffer
	encoder := json.NewEncoder(&written)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(written.Bytes(), []byte("\n")), nil
}
