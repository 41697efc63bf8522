// SPDX-License-Identifier: Apache-2.0

package proctest_test

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/internal/proctest"
)

// A talk is a connection on which commands are sent as lines.
type talk struct {
	t *testing.T
	net.Conn
}

func talkTo(t *testing.T, addr string) talk {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return talk{t, conn}
}

func (c talk) say(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c, line+"\r\n"); err != nil {
		c.t.Fatalf("send %q: %v", line, err)
	}
}

// hear wants these bytes to be the next within some time.
func (c talk) hear(want string, within time.Duration) {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(within))
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != want {
		c.t.Errorf("got %q, %v, want %q", got[:n], err, want)
	}
}

// silence wants the connection to stay open and silent.
func (c talk) silence(during time.Duration) {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(during))
	got := make([]byte, 1)
	if n, err := c.Read(got); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Errorf("got %q, %v, want nothing for %v", got[:n], err, during)
	}
}

// ended wants the connection to be closed, without another byte.
func (c talk) ended() {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(timeout))
	got := make([]byte, 1)
	if n, err := c.Read(got); n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Errorf("got %q, %v, want the connection closed", got[:n], err)
	}
}

func TestProxy_CutBeforeReply(t *testing.T) {
	r := proctest.StartRedis(t)
	p := proctest.StartProxy(t, r.Addr)
	first, second := talkTo(t, p.Addr), talkTo(t, p.Addr)
	first.say("PING")
	first.hear("+PONG\r\n", timeout)
	p.CutBeforeReply(1)
	first.say("INCR done")
	first.ended()
	do(t, r, "1", "GET", "done")
	second.say("INCR done")
	second.hear(":2\r\n", timeout)
}

func TestProxy_Connections(t *testing.T) {
	r := proctest.StartRedis(t)
	p := proctest.StartProxy(t, r.Addr)
	for want := range 3 {
		if got := p.Connections(); got != want {
			t.Errorf("got %d connections, want %d", got, want)
		}
		c := talkTo(t, p.Addr)
		c.say("PING")
		c.hear("+PONG\r\n", timeout)
		c.Close() // those that have ended count, too
	}
}

func TestProxy_CutNow(t *testing.T) {
	p := proctest.StartProxy(t, proctest.StartRedis(t).Addr)
	before := talkTo(t, p.Addr)
	before.say("PING")
	before.hear("+PONG\r\n", timeout)
	p.CutNow()
	before.ended()
	after := talkTo(t, p.Addr)
	after.say("PING")
	after.hear("+PONG\r\n", timeout)
}

func TestProxy_Blackhole(t *testing.T) {
	r := proctest.StartRedis(t)
	p := proctest.StartProxy(t, r.Addr)
	asking, idle := talkTo(t, p.Addr), talkTo(t, p.Addr)
	idle.say("PING")
	idle.hear("+PONG\r\n", timeout)
	p.Blackhole(true)
	during := talkTo(t, p.Addr)
	asking.say("INCR done")
	during.say("INCR done")
	asking.silence(50 * time.Millisecond)
	during.silence(50 * time.Millisecond)
	do(t, r, "", "GET", "done")

	p.Blackhole(false)
	asking.ended()
	during.ended()
	idle.say("INCR done")
	idle.hear(":1\r\n", timeout)
}

func TestProxy_Delay(t *testing.T) {
	const delay = 500 * time.Millisecond
	p := proctest.StartProxy(t, proctest.StartRedis(t).Addr)
	c := talkTo(t, p.Addr)
	p.Delay(delay)
	began := time.Now()
	for range 20 {
		c.say("PING")
	}
	c.hear(strings.Repeat("+PONG\r\n", 20), timeout)
	if took := time.Since(began); took < delay || took > 10*delay { // one after the other they would take 20
		t.Errorf("20 requests at once took %v, want about %v", took, delay)
	}
	p.Delay(time.Hour) // which the test's end does not wait for
	c.say("PING")
	c.silence(50 * time.Millisecond)
}

func TestProxy_Refuse(t *testing.T) {
	p := proctest.StartProxy(t, proctest.StartRedis(t).Addr)
	before := talkTo(t, p.Addr)
	p.Refuse(true)
	p.Refuse(true) // and nothing more
	if conn, err := net.Dial("tcp", p.Addr); err == nil {
		conn.Close()
		t.Errorf("a connection to %s while it refuses: want an error", p.Addr)
	}
	before.say("PING")
	before.hear("+PONG\r\n", timeout)
	p.Refuse(false)
	after := talkTo(t, p.Addr)
	after.say("PING")
	after.hear("+PONG\r\n", timeout)
}

func TestProxy_NoServer(t *testing.T) {
	r := proctest.StartRedis(t)
	p := proctest.StartProxy(t, r.Addr)
	c := talkTo(t, p.Addr)
	c.say("PING")
	c.hear("+PONG\r\n", timeout)
	r.Kill()
	c.ended()
	talkTo(t, p.Addr).ended()
	r.Restart()
	c = talkTo(t, p.Addr)
	c.say("PING")
	c.hear("+PONG\r\n", timeout)
}
