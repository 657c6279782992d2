module ranktree

go 1.25.0

require (
	github.com/nats-io/nats.go v1.53.1
	github.com/nats-io/nuid v1.0.1
)

require (
	github.com/klauspost/compress v1.19.2 // indirect
	github.com/nats-io/nkeys v0.4.16 // indirect
	golang.org/x/crypto v0.54.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
