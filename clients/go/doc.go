// Package ranktree writes and reads exact leaderboards over HTTP, through any node of ranktree.
//
// A [Client] has a method for each request. Package ranktree/nats publishes jobs to NATS. Types of
// requests and answers follow from the API's document; what may be absent and has a zero that means
// something is a pointer, for which [Ptr] is of use.
package ranktree
