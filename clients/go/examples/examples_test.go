// Package examples has the example, and the README's code, run as they are.
package examples

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ranktree"
	"ranktree/internal/servers"
)

func start(t *testing.T) (*servers.Nats, *servers.Node) {
	t.Helper()
	server := servers.StartNats(t)
	return server, servers.StartNode(t, "--nats", server.URL, "--shards", "3")
}

func run(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"run"}, arguments...)...)
	command.Dir = ".."
	told, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, told)
	}
	return string(told)
}

func TestTheGamePlaysAndEveryPointCounts(t *testing.T) {
	server, node := start(t)
	for _, way := range []string{"", server.URL} {
		// Twice: a game that is started again goes on.
		for range 2 {
			told := run(t, "./examples/game", "-url", node.URL, "-matches", "30", "-nats", way)
			if !strings.Contains(told, "The best of") {
				t.Error(told)
			}
		}
	}
	client, err := ranktree.New(node.URL)
	if err != nil {
		t.Fatal(err)
	}
	status, err := client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, shard := range status.Shards {
		if *shard.Rejects != 0 {
			t.Error(shard.Shard, *shard.Rejects)
		}
	}
}

var packages = map[string]string{
	"errors.":   `"errors"`,
	"fmt.":      `"fmt"`,
	"ranktree.": `"ranktree"`,
	"nats.":     `"ranktree/nats"`,
}

// whole makes a program of a block that has no `package` of its own.
func whole(block string) string {
	if strings.HasPrefix(block, "package ") {
		return block
	}
	var text bytes.Buffer
	text.WriteString("package main\n\nimport (\n\"context\"\n\"log\"\n")
	for used, path := range packages {
		if strings.Contains(block, used) || used == "ranktree." {
			fmt.Fprintln(&text, path)
		}
	}
	text.WriteString(")\n\nfunc block(ctx context.Context, client *ranktree.Client) error {\n" + block + "\nreturn nil\n}\n\n")
	text.WriteString(`func main() {
	client, err := ranktree.New("http://127.0.0.1:8080")
	if err == nil {
		err = block(context.Background(), client)
	}
	if err != nil {
		log.Fatal(err)
	}
}
`)
	return text.String()
}

func TestTheCodeOfTheReadmeRuns(t *testing.T) {
	server, node := start(t)
	text, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```").FindAllSubmatch(text, -1)
	if len(blocks) < 6 {
		t.Errorf("%d blocks", len(blocks))
	}
	for number, block := range blocks {
		code := strings.ReplaceAll(whole(string(block[1])), "http://127.0.0.1:8080", node.URL)
		code = strings.ReplaceAll(code, "nats://127.0.0.1:4222", server.URL)
		file := filepath.Join(t.TempDir(), fmt.Sprintf("block%d.go", number))
		if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, file)
	}
}
