// Package servers starts real servers for the tests: a nats-server, nodes, and a connection that loses
// answers.
package servers

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Limit is as long as a machine may take that does much else.
const Limit = 60 * time.Second

// Root is the folder of the project.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..", "..")
}

func program(t testing.TB, variable, otherwise string) string {
	t.Helper()
	named := os.Getenv(variable)
	if named == "" {
		named = otherwise
	}
	found, err := exec.LookPath(named)
	if err != nil {
		t.Fatalf("%s is no program: set %s", named, variable)
	}
	return found
}

// Until waits for a state.
func Until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(Limit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("%s: not within %s", what, Limit)
}

// FreePort is one that nobody listens on.
func FreePort(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// process is a program that ends with the test.
type process struct {
	command *exec.Cmd
	log     string
	ended   chan struct{}
}

func start(t testing.TB, log, program string, arguments ...string) *process {
	t.Helper()
	output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	command := exec.Command(program, arguments...)
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{command, log, make(chan struct{})}
	go func() {
		_ = command.Wait()
		close(p.ended)
	}()
	t.Cleanup(p.Kill)
	return p
}

// Kill is kill -9: nothing is written, closed or said.
func (p *process) Kill() {
	_ = p.command.Process.Kill()
	<-p.ended
}

func (p *process) mustRun(t testing.TB) {
	t.Helper()
	select {
	case <-p.ended:
		told, _ := os.ReadFile(p.log)
		t.Fatalf("it ended: %s", told)
	default:
	}
}

// Nats is a nats-server, which may be killed and started again with the same data and address.
type Nats struct {
	*process
	t       testing.TB
	folder  string
	flags   []string
	Address string
	URL     string
}

// StartNats starts a nats-server that ends with the test.
func StartNats(t testing.TB, flags ...string) *Nats {
	t.Helper()
	address := FreePort(t)
	n := &Nats{t: t, folder: t.TempDir(), flags: flags, Address: address, URL: "nats://" + address}
	n.Start()
	return n
}

// Start starts it again.
func (n *Nats) Start() {
	n.t.Helper()
	host, port, _ := net.SplitHostPort(n.Address)
	flags := append([]string{"-js", "-a", host, "-p", port, "-sd", filepath.Join(n.folder, "nats")}, n.flags...)
	n.process = start(n.t, filepath.Join(n.folder, "nats.log"), program(n.t, "NATS_SERVER_BIN", "nats-server"), flags...)
	Until(n.t, "nats-server listens", func() bool {
		n.mustRun(n.t)
		connection, err := net.Dial("tcp", n.Address)
		if err == nil {
			connection.Close()
		}
		return err == nil
	})
}

// Node may be killed and started again with the same data and address.
type Node struct {
	*process
	t      testing.TB
	folder string
	listen string
	flags  []string
	URL    string
}

// StartNode starts a node that ends with the test.
func StartNode(t testing.TB, flags ...string) *Node {
	t.Helper()
	n := &Node{t: t, folder: t.TempDir(), listen: "127.0.0.1:0", flags: flags}
	n.Start()
	return n
}

var ready = regexp.MustCompile(`(?m)^.*http://(127\.0\.0\.1:\d+)`)

// Start starts it again.
func (n *Node) Start() {
	n.t.Helper()
	log := filepath.Join(n.folder, "node.log")
	before, _ := os.ReadFile(log)
	otherwise := filepath.Join(Root(), "bin", "ranktree")
	flags := append([]string{"serve", "--listen", n.listen, "--data-dir", filepath.Join(n.folder, "data")}, n.flags...)
	n.process = start(n.t, log, program(n.t, "RANKTREE_BIN", otherwise), flags...)
	Until(n.t, "the node is ready", func() bool {
		n.mustRun(n.t)
		told, _ := os.ReadFile(log)
		found := ready.FindSubmatch(told[len(before):])
		if found == nil {
			return false
		}
		n.listen = string(found[1])
		return true
	})
	n.URL = "http://" + n.listen
}

// Link passes bytes on between clients and a server, and loses what the server says while it is deaf.
type Link struct {
	Address string
	IsDeaf  atomic.Bool
	// Bytes that the server said and the client did not hear.
	Lost atomic.Int64

	mutex sync.Mutex
	ends  []net.Conn
}

// StartLink starts one that ends with the test.
func StartLink(t testing.TB, server string) *Link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Link{Address: listener.Addr().String()}
	t.Cleanup(func() {
		listener.Close()
		l.Cut()
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			other, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			l.mutex.Lock()
			l.ends = append(l.ends, client, other)
			l.mutex.Unlock()
			go l.pass(other, client, false)
			go l.pass(client, other, true)
		}
	}()
	return l
}

// Cut ends all connections.
func (l *Link) Cut() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, end := range l.ends {
		end.Close()
	}
	l.ends = nil
}

func (l *Link) pass(to, from net.Conn, isAnswer bool) {
	defer to.Close()
	defer from.Close()
	_, _ = io.Copy(&sink{l, to, isAnswer}, from)
}

type sink struct {
	link     *Link
	to       net.Conn
	isAnswer bool
}

func (s *sink) Write(data []byte) (int, error) {
	if s.isAnswer && s.link.IsDeaf.Load() {
		s.link.Lost.Add(int64(len(data)))
		return len(data), nil
	}
	return s.to.Write(data)
}
