package ranktree

import "time"

// SetSilence is how long a watched board may be silent before its connection counts as lost.
func SetSilence(c *Client, silence time.Duration) { c.silence = silence }
