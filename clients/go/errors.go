package ranktree

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Kinds of a [ProblemError], by the status of the answer, for [errors.Is].
var (
	// ErrInvalid: 400, 413, 422: the request can never succeed as it is. Nothing was applied.
	ErrInvalid = errors.New("invalid request")
	// ErrAccess: 401, 403: the bearer token is missing or unknown, or does not allow this.
	ErrAccess = errors.New("no access")
	// ErrNotFound: 404: no such board, member or position.
	ErrNotFound = errors.New("not found")
	// ErrRejected: 409: the state refuses it: a stale version, a score out of range, and others.
	ErrRejected = errors.New("rejected")
	// ErrUnavailable: 503: overloaded, or a shard that no node answers for. With [CodeCommitUnknown] a
	// write may or may not be applied.
	ErrUnavailable = errors.New("unavailable")
	// ErrNotYetApplied: 504: the writes that After names were not applied in time.
	ErrNotYetApplied = errors.New("not yet applied")
)

var kinds = map[int]error{
	400: ErrInvalid,
	401: ErrAccess,
	403: ErrAccess,
	404: ErrNotFound,
	409: ErrRejected,
	413: ErrInvalid,
	422: ErrInvalid,
	503: ErrUnavailable,
	504: ErrNotYetApplied,
}

// ProblemError is an answer that is a problem (RFC 9457): the service refused a request, or could not
// do it. [errors.Is] tells its kind, such as [ErrNotFound].
type ProblemError struct {
	Status int
	// Stable, and for programs: one of the constants whose names begin with Code.
	Code string
	// For people.
	Detail string
	// When to try again, if the service said so; otherwise negative.
	RetryAfter time.Duration
	// Which jobs of a request are invalid.
	Errors []InvalidJob
	// Of a request that failed in part: names the jobs that were stored, and what came of each job.
	Token   string
	Results []JobResult
	// The shards that no node answers for.
	Shards []int64
	// The whole answer.
	Body json.RawMessage
}

func (e *ProblemError) Error() string {
	return fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Detail)
}

// Is tells whether the error is of a kind.
func (e *ProblemError) Is(target error) bool {
	return target != nil && kinds[e.Status] == target
}

// NewProblemError reads the answer of a request that failed. The header Retry-After may be empty.
func NewProblemError(status int, body []byte, retryAfter string) *ProblemError {
	var read struct {
		Code    string            `json:"code"`
		Detail  string            `json:"detail"`
		Errors  []InvalidJob      `json:"errors"`
		Token   string            `json:"token"`
		Results []JobResult       `json:"results"`
		Shards  []json.RawMessage `json:"shards"`
	}
	if json.Unmarshal(body, &read) != nil || read.Code == "" {
		read.Code = "unknown"
	}
	if read.Detail == "" {
		read.Detail = "the answer says no more"
	}
	err := &ProblemError{
		Status:     status,
		Code:       read.Code,
		Detail:     read.Detail,
		RetryAfter: -1,
		Errors:     read.Errors,
		Token:      read.Token,
		Results:    read.Results,
		Body:       body,
	}
	for _, raw := range read.Shards {
		// The readiness of a node has objects there.
		var shard int64
		if json.Unmarshal(raw, &shard) == nil {
			err.Shards = append(err.Shards, shard)
		}
	}
	if seconds, wrong := strconv.ParseUint(retryAfter, 10, 31); wrong == nil {
		err.RetryAfter = time.Duration(seconds) * time.Second
	}
	return err
}

// ConnectionError says that no answer came. It wraps the reason, such as [context.Canceled].
type ConnectionError struct {
	// The request was a write and may have reached the service. Send it again with the Version it had,
	// before later writes of the member: then it counts once.
	MayBeApplied bool
	told         string
	err          error
}

// NewConnectionError makes one for a request of which told says what it was.
func NewConnectionError(told string, mayBeApplied bool, err error) *ConnectionError {
	return &ConnectionError{MayBeApplied: mayBeApplied, told: told, err: err}
}

func (e *ConnectionError) Error() string { return e.told + ": " + e.err.Error() }

// Unwrap is the reason.
func (e *ConnectionError) Unwrap() error { return e.err }
