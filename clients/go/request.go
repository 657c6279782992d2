package ranktree

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"ranktree/internal/wire"
)

type request struct {
	method string
	route  string
	// The names and values of a query, encoded.
	query []string
	body  []byte
}

func (r *request) isRead() bool {
	return r.method == http.MethodGet || strings.HasSuffix(r.route, ":lookup") || strings.HasSuffix(r.route, "/ranks:of")
}

// mayRepeat tells whether a request that was refused may be sent again as it is. A write may be only if
// the service says that it is overloaded, and has stored no part of it.
func (r *request) mayRepeat(problem *ProblemError) bool {
	if problem.Status != http.StatusServiceUnavailable {
		return false
	}
	if r.isRead() {
		return problem.Code == CodeOverloaded || problem.Code == CodeShardUnavailable
	}
	return problem.Code == CodeOverloaded && problem.Token == "" && len(problem.Results) == 0
}

// ask sends a request, and reads its answer into a new T.
func ask[T any](ctx context.Context, c *Client, method, route string, body any, queries ...any) (*T, error) {
	r := &request{method: method, route: route}
	for _, query := range queries {
		r.query = append(r.query, encodeQuery(query)...)
	}
	if body != nil {
		var err error
		if r.body, err = wire.Encode(body); err != nil {
			return nil, err
		}
	}
	answer := new(T)
	return answer, c.send(ctx, r, answer)
}

func (c *Client) send(ctx context.Context, r *request, answer any) error {
	for number := 0; ; number++ {
		err := c.once(ctx, r, answer)
		pause, again := wire.Pause(number), false
		var problem *ProblemError
		var connection *ConnectionError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &problem):
			again = r.mayRepeat(problem)
			if problem.RetryAfter >= 0 {
				pause = min(problem.RetryAfter, wire.PauseMax)
			}
		case errors.As(err, &connection):
			again = !connection.MayBeApplied
		}
		if !again || number >= c.retries || ctx.Err() != nil || wire.Sleep(ctx, pause) != nil {
			return err
		}
	}
}

func (c *Client) once(ctx context.Context, r *request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout+waits(r.query))
	defer cancel()
	response, err := c.open(ctx, c.http, r, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return c.noAnswer(r, !r.isRead(), err)
	}
	isSuccess := response.StatusCode >= 200 && response.StatusCode < 300
	if !isSuccess || json.Unmarshal(body, answer) != nil {
		return NewProblemError(response.StatusCode, body, response.Header.Get("Retry-After"))
	}
	return nil
}

// open sends a request once, and returns its answer, whatever it is.
func (c *Client) open(ctx context.Context, over *http.Client, r *request, header http.Header) (*http.Response, error) {
	address := c.url + r.route
	if len(r.query) > 0 {
		address += "?" + strings.Join(r.query, "&")
	}
	// Nothing was sent if there was no connection to send it on.
	var isConnected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { isConnected.Store(true) }}
	traced := httptrace.WithClientTrace(ctx, trace)
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	made, err := http.NewRequestWithContext(traced, r.method, address, body)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		made.Header[name] = values
	}
	if r.body != nil {
		made.Header.Set("Content-Type", "application/json")
	}
	if c.bearer != "" {
		made.Header.Set("Authorization", "Bearer "+c.bearer)
	}
	response, err := over.Do(made)
	if err != nil {
		return nil, c.noAnswer(r, isConnected.Load() && !r.isRead(), err)
	}
	return response, nil
}

func (c *Client) noAnswer(r *request, mayBeApplied bool, err error) error {
	// What the error says of the request, with its query, is said already.
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	told := fmt.Sprintf("%s did not answer %s %s", c.called, r.method, r.route)
	return NewConnectionError(told, mayBeApplied, err)
}

// path of the API. Bytes that are not letters, digits, -, _, . or ~ are percent-encoded.
func path(parts ...string) string {
	route := "/v1"
	for _, part := range parts {
		route += "/" + segment(part)
	}
	return route
}

func segment(part string) string {
	// A dot as well: many programs on the way take the members . and .. for folders.
	isDots := strings.Trim(part, ".") == ""
	var text strings.Builder
	for at := range len(part) {
		letter := part[at]
		switch {
		case 'a' <= letter && letter <= 'z', 'A' <= letter && letter <= 'Z', '0' <= letter && letter <= '9',
			letter == '-', letter == '_', letter == '~', letter == '.' && !isDots:
			text.WriteByte(letter)
		default:
			fmt.Fprintf(&text, "%%%02X", letter)
		}
	}
	return text.String()
}

// encodeQuery writes the fields of a query that are set.
func encodeQuery(query any) []string {
	value := reflect.ValueOf(query)
	if value.Kind() == reflect.Pointer {
		if value.IsNil() {
			return nil
		}
		value = value.Elem()
	}
	var found []string
	for at := range value.NumField() {
		if field := value.Field(at); !field.IsZero() {
			found = append(found, value.Type().Field(at).Tag.Get("query")+"="+word(field))
		}
	}
	return found
}

func word(value reflect.Value) string {
	switch value.Kind() {
	case reflect.Pointer:
		return word(value.Elem())
	case reflect.Bool:
		return strconv.FormatBool(value.Bool())
	case reflect.Int64:
		return strconv.FormatInt(value.Int(), 10)
	case reflect.Uint64:
		return strconv.FormatUint(value.Uint(), 10)
	case reflect.Float64:
		return strconv.FormatFloat(value.Float(), 'f', -1, 64)
	case reflect.Slice:
		// A comma within a value is encoded, and one between values is not.
		words := make([]string, value.Len())
		for at := range words {
			words[at] = word(value.Index(at))
		}
		return strings.Join(words, ",")
	default:
		return url.QueryEscape(value.String())
	}
}

// waits is how long a read may wait on the service's side, for what After names.
func waits(query []string) time.Duration {
	isAfter, waits := false, 5*time.Second
	for _, one := range query {
		isAfter = isAfter || strings.HasPrefix(one, "after=")
		if text, is := strings.CutPrefix(one, "timeout_ms="); is {
			if number, err := strconv.ParseInt(text, 10, 32); err == nil {
				waits = time.Duration(number) * time.Millisecond
			}
		}
	}
	if !isAfter {
		return 0
	}
	return waits
}
