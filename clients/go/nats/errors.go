package nats

import "fmt"

// PublishError says that a message was not acknowledged by NATS. It wraps the reason.
type PublishError struct {
	// The Nats-Msg-Id that follows from the one you gave: publish the same jobs under the same id to go on.
	// Empty if you gave none. Then the jobs may have shared a message with others, and whether they may be
	// published again is for their Version to say.
	MessageID string
	// False only if the message was refused each time, or not sent, and so is not stored.
	MayBeStored bool
	err         error
}

func (e *PublishError) Error() string {
	if e.MessageID == "" {
		return fmt.Sprintf("the message was not acknowledged: %s", e.err)
	}
	return fmt.Sprintf("the message %q was not acknowledged: %s", e.MessageID, e.err)
}

// Unwrap is the reason.
func (e *PublishError) Unwrap() error { return e.err }

// PublishManyError says that some messages of a PublishMany were not acknowledged.
type PublishManyError struct {
	// The one that you gave: publish the same jobs in the same order under it to go on. Empty if you gave none.
	MessageID string
	// Of each of those messages, with its own id.
	Errors []*PublishError
	// Names the other messages; empty if there are none.
	Token string
}

// MayBeStored tells whether any of the messages may be stored.
func (e *PublishManyError) MayBeStored() bool {
	for _, one := range e.Errors {
		if one.MayBeStored {
			return true
		}
	}
	return false
}

func (e *PublishManyError) Error() string {
	return fmt.Sprintf("%d messages: %s", len(e.Errors), e.Errors[0])
}

// Unwrap is what became of each message.
func (e *PublishManyError) Unwrap() []error {
	errs := make([]error, len(e.Errors))
	for at, one := range e.Errors {
		errs[at] = one
	}
	return errs
}
