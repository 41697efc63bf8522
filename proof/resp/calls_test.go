// SPDX-License-Identifier: Apache-2.0

package resp_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/respapi"
)

// mustDial connects to a server that accepts the client.
func mustDial(t testing.TB, dial func(testing.TB, connection) (client, error), c connection) client {
	t.Helper()
	client, err := dial(t, c)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(client.close)
	return client
}

// wantReply sends a command and compares its reply.
func wantReply(t testing.TB, c client, want any, command ...string) {
	t.Helper()
	if got, err := do(c, command...); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q = %v, %v; want %v", command, got, err, want)
	}
}

// wantError sends a command and looks for a text in its error.
func wantError(t testing.TB, c client, text string, command ...string) {
	t.Helper()
	if got, err := do(c, command...); err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%q = %v, %v; want an error with %q", command, got, err, text)
	}
}

// integers is a reply of CL.THROTTLE.
func integers(numbers ...int64) []any {
	var list []any
	for _, n := range numbers {
		list = append(list, n)
	}
	return list
}

func TestClients_Throttle(t *testing.T) {
	forEachClient(t, func(t *testing.T, dial func(testing.TB, connection) (client, error)) {
		versions := []int{2, 3}
		if testing.Short() { // a second start of each Node.js client is slow
			versions = versions[1:]
		}
		for _, version := range versions {
			t.Run(fmt.Sprint("RESP", version), func(t *testing.T) {
				s := serve(t, respapi.Config{})
				at := s.connection()
				at.resp = version
				c := mustDial(t, dial, at)
				wantReply(t, c, "PONG", "PING")
				wantReply(t, c, integers(0, 3, 2, -1, 60), "CL.THROTTLE", "user", "2", "1", "60")
				wantReply(t, c, integers(0, 3, 1, -1, 120), "cl.throttle", "user", "2", "1", "60", "1")
				wantReply(t, c, integers(0, 3, 0, -1, 180), "RL.THROTTLE", "user", "2", "1", "60")
				wantReply(t, c, integers(1, 3, 0, 60, 180), "CL.THROTTLE", "user", "2", "1", "60")
				wantReply(t, c, integers(0, 3, 0, -1, 180), "CL.THROTTLE", "user", "2", "1", "60", "0")
				wantReply(t, c, integers(1, 3, 3, -1, 0), "CL.THROTTLE", "other", "2", "1", "60", "4")
			})
		}
	})
}

func TestClients_Errors(t *testing.T) {
	forEachClient(t, func(t *testing.T, dial func(testing.TB, connection) (client, error)) {
		s := serve(t, respapi.Config{})
		c := mustDial(t, dial, s.connection())
		for _, command := range [][]string{
			{"CL.THROTTLE"},
			{"CL.THROTTLE", "user", "2", "1"},
			{"CL.THROTTLE", "user", "2", "1", "60", "1", "1"},
			{"CL.THROTTLE", "user", "two", "1", "60"},
			{"CL.THROTTLE", "user", "2", "0", "60"},
			{"CL.THROTTLE", "user", "2", "1", "0"},
			{"CL.THROTTLE", "user", "2", "1", "60", "-1"},
			{"NOSUCH", "command"},
		} {
			if got, err := do(c, command...); err == nil {
				t.Errorf("%q = %v, want an error", command, got)
			}
		}
		wantError(t, c, "unknown command 'NOSUCH'", "NOSUCH", "command")
		wantReply(t, c, "PONG", "PING")
	})
}

func TestClients_Pipeline(t *testing.T) {
	forEachClient(t, func(t *testing.T, dial func(testing.TB, connection) (client, error)) {
		s := serve(t, respapi.Config{})
		c := mustDial(t, dial, s.connection())
		const calls = 1000
		commands := make([][]string, 0, calls)
		for range calls - 1 {
			commands = append(commands, []string{"CL.THROTTLE", "user", "499", "1", "60"})
		}
		commands = append(commands, []string{"NOSUCH"})
		replies, err := c.pipeline(commands...)
		if err != nil || len(replies) != calls {
			t.Fatalf("%d replies, %v; want %d", len(replies), err, calls)
		}
		for i, r := range replies[:calls-1] {
			left := int64(max(499-i, 0))
			numbers, _ := r.value.([]any)
			if r.err != nil || len(numbers) != 5 || numbers[0] != int64(i/500) || numbers[2] != left {
				t.Fatalf("reply %d: %v, %v; want [%d 500 %d …]", i, r.value, r.err, i/500, left)
			}
		}
		if replies[calls-1].err == nil {
			t.Errorf("the unknown command at the end: %v, want an error", replies[calls-1].value)
		}
	})
}

func TestClients_Authenticate(t *testing.T) {
	forEachClient(t, func(t *testing.T, dial func(testing.TB, connection) (client, error)) {
		s := serve(t, respapi.Config{Authenticate: authenticate})
		c := mustDial(t, dial, s.connection())
		wantReply(t, c, integers(0, 3, 2, -1, 60), "CL.THROTTLE", "user", "2", "1", "60")

		wrong := s.connection()
		wrong.password = "a wrong password"
		wantRefusal(t, dial, wrong)
		none := s.connection()
		none.user, none.password = "", ""
		wantRefusal(t, dial, none)

		reader := s.connection()
		reader.password = readToken
		c = mustDial(t, dial, reader)
		wantReply(t, c, "PONG", "PING")
		if got, err := do(c, "CL.THROTTLE", "user", "2", "1", "60"); err == nil {
			t.Errorf("CL.THROTTLE with the role read = %v, want an error", got)
		}
	})
}

// wantRefusal checks that a client can not connect, or can not decide. Some clients connect without a check.
func wantRefusal(t *testing.T, dial func(testing.TB, connection) (client, error), at connection) {
	t.Helper()
	c, err := dial(t, at)
	if err != nil {
		return
	}
	defer c.close()
	if got, err := do(c, "CL.THROTTLE", "user", "2", "1", "60"); err == nil {
		t.Errorf("CL.THROTTLE with password %q = %v, want an error", at.password, got)
	}
}

func TestClients_TLS(t *testing.T) {
	forEachClient(t, func(t *testing.T, dial func(testing.TB, connection) (client, error)) {
		s, authority := serveTLS(t, respapi.Config{Authenticate: authenticate})
		at := s.connection()
		at.authority = authority
		c := mustDial(t, dial, at)
		wantReply(t, c, integers(0, 3, 2, -1, 60), "CL.THROTTLE", "user", "2", "1", "60")
	})
}

func TestClients_Restart(t *testing.T) {
	forEachClient(t, func(t *testing.T, dial func(testing.TB, connection) (client, error)) {
		s := serve(t, respapi.Config{Authenticate: authenticate})
		c := mustDial(t, dial, s.connection())
		wantReply(t, c, integers(0, 3, 2, -1, 60), "CL.THROTTLE", "user", "2", "1", "60")
		s.stop()
		s.start()
		// A client notices that its connection is closed at the latest when it sends the next command.
		testkit.Eventually(t, "PING after the restart", func() error {
			_, err := do(c, "PING")
			return err
		})
		wantReply(t, c, integers(0, 3, 1, -1, 120), "CL.THROTTLE", "user", "2", "1", "60")
	})
}
