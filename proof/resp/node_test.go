// SPDX-License-Identifier: Apache-2.0

package resp_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"testing"
)

// A nodeClient is a Node.js process with a client: see node/driver.mjs.
type nodeClient struct {
	in    io.WriteCloser
	lines *bufio.Reader
	cmd   *exec.Cmd
	log   *bytes.Buffer // its standard error
}

// An answer is a line of the process.
type answer struct {
	Error   string
	Replies []struct {
		Value any
		Error string
	}
}

func dialNode(module string) func(testing.TB, connection) (client, error) {
	return func(t testing.TB, c connection) (client, error) {
		host, port := splitPort(t, c.addr)
		options, err := json.Marshal(map[string]any{
			"host": host, "port": port, "user": orNil(c.user), "password": orNil(c.password), "resp": c.resp, "authority": orNil(c.authority),
		})
		if err != nil {
			t.Fatal(err)
		}
		n := &nodeClient{cmd: exec.Command("node", "node/driver.mjs", module, string(options)), log: &bytes.Buffer{}}
		n.cmd.Stderr = n.log
		if n.in, err = n.cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		out, err := n.cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		n.lines = bufio.NewReader(out)
		if err := n.cmd.Start(); err != nil {
			t.Fatalf("%v: install Debian's nodejs, or run scripts/setup", err)
		}
		t.Cleanup(func() { _ = n.cmd.Process.Kill() }) // after a failed test
		if _, err := n.read(); err != nil {
			n.close()
			return nil, err
		}
		return n, nil
	}
}

// orNil returns nil for an empty text, which is undefined in JavaScript.
func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func (n *nodeClient) pipeline(commands ...[]string) ([]reply, error) {
	line, err := json.Marshal(commands)
	if err != nil {
		return nil, err
	}
	if _, err := n.in.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	a, err := n.read()
	if err != nil {
		return nil, err
	}
	var replies []reply
	for _, one := range a.Replies {
		r := reply{value: toIntegers(one.Value)}
		if one.Error != "" {
			r.err = errors.New(one.Error)
		}
		replies = append(replies, r)
	}
	return replies, nil
}

func (n *nodeClient) read() (answer, error) {
	var a answer
	line, err := n.lines.ReadBytes('\n')
	if err != nil {
		_ = n.cmd.Wait() // it has ended, and the log is complete
		return a, fmt.Errorf("node: %w; run scripts/setup if a package is missing\n%s", err, n.log)
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	if err := decoder.Decode(&a); err != nil {
		return a, fmt.Errorf("node printed %q: %w", line, err)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

// toIntegers makes the numbers of a reply int64.
func toIntegers(value any) any {
	switch v := value.(type) {
	case json.Number:
		n, err := v.Int64()
		if err != nil {
			return v.String()
		}
		return n
	case []any:
		for i := range v {
			v[i] = toIntegers(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = toIntegers(v[key])
		}
	}
	return value
}

func (n *nodeClient) close() {
	n.in.Close()
	_ = n.cmd.Wait()
}
