// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
)

// A fakeRedis is a proxy for a Redis that changes the answers of some scripts.
type fakeRedis struct {
	redis   *proctest.Redis
	answer  func() (reply string, instead bool) // an answer of Redis; a hangUp closes the connection
	conns   atomic.Int64
	last    atomic.Int64 // the connection with the last script
	running sync.WaitGroup
}

const hangUp = "hang up"

// startFake returns the address of a fakeRedis.
func startFake(t *testing.T, f *fakeRedis) string {
	t.Helper()
	f.redis = proctest.StartRedis(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			f.running.Go(func() { f.serve(conn); stop() })
		}
	})
	t.Cleanup(func() { listener.Close(); cancel(); f.running.Wait() })
	return listener.Addr().String()
}

func (f *fakeRedis) serve(conn net.Conn) {
	defer conn.Close()
	number, r := f.conns.Add(1), bufio.NewReader(conn)
	for {
		command, err := readCommand(r)
		if err != nil {
			return
		}
		reply, instead := "+OK\r\n", false
		switch command[0] {
		case "HELLO":
			reply = "%2\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:3\r\n"
		case "EVAL", "EVALSHA":
			f.last.Store(number)
			if reply, instead = f.answer(); !instead {
				text, err := f.redis.Do(command...)
				if reply = bulk(text); err != nil {
					reply = "-" + err.Error() + "\r\n"
				}
			}
		}
		reply, last := strings.CutSuffix(reply, hangUp)
		if _, err := io.WriteString(conn, reply); err != nil || last {
			return
		}
	}
}

func readCommand(r *bufio.Reader) (command []string, err error) {
	var n, size int
	if _, err := fmt.Fscanf(r, "*%d\r\n", &n); err != nil {
		return nil, err
	}
	for range n {
		if _, err := fmt.Fscanf(r, "$%d\r\n", &size); err != nil {
			return nil, err
		}
		word := make([]byte, size+len("\r\n"))
		if _, err := io.ReadFull(r, word); err != nil {
			return nil, err
		}
		command = append(command, string(word[:size]))
	}
	return command, nil
}

func bulk(text string) string { return "$" + strconv.Itoa(len(text)) + "\r\n" + text + "\r\n" }

// TestFault_Garbage proves that an invalid answer is a MaybeSpent error, and that the next take works.
func TestFault_Garbage(t *testing.T) {
	faulttest.RunParallel(t)
	var next atomic.Pointer[string]
	var given atomic.Int64 // of invalid replies
	f := &fakeRedis{answer: func() (string, bool) {
		if reply := next.Load(); reply != nil {
			given.Add(1)
			return *reply, true
		}
		return "", false
	}}
	s, _ := dialURL(t, "redis://"+startFake(t, f), redisstore.Config{Timeout: 100 * time.Millisecond})
	tests := []struct {
		reply string
		drops bool // so that the connection is unusable
	}{
		{"garbage\r\n", true}, {"\r\n", true}, {"\x00\x01\x02\r\n\r\n", true}, {"?1\r\n", true}, {"$x\r\n", true},
		{"$5\r\nabc" + hangUp, true}, {"$" + hangUp, true}, {hangUp, true}, {"*2\r\n$1\r\na\r\n" + hangUp, true},
		{"HTTP/1.1 400 Bad Request\r\n\r\n", true}, {"$20\r\nhalf of it", true}, {"", true},
		{":5\r\n", false}, {"*0\r\n", false}, {"_\r\n", false}, {"%0\r\n", false}, {"#t\r\n", false}, {"+\r\n", false},
		{bulk(""), false}, {bulk("x"), false}, {bulk("17"), false}, {bulk("17 1"), false}, {bulk("17 x -"), false},
		{bulk("17 nonsense"), false}, {bulk("17 1:2 l 1"), false}, {bulk("17 1:99999999999999999999@1 l 1"), false},
		{bulk("17 1:5+x@2 l 1"), false}, {bulk("17 1:1@99999999999999999999 l 1"), false}, {bulk("-17 -"), false},
		{bulk("17 1/1@17 l 1"), false}, {bulk("17 2:1@17 l 1"), false},
		{bulk("17 - 2"), false}, {bulk("17 - 1 1 0"), false}, {bulk("17 - 0 1"), false}, {bulk("17 - 0 2 0"), false}, {bulk("17 - "), false},
		{bulk("17 2:l 0123456789abcdef 1"), false}, {bulk("17 2:l 01234567 1"), false}, {bulk("17 2:l " + zeros(15) + "\x01 1"), false},
		{bulk("!x"), false}, {bulk("!"), false}, {bulk("!7"), false}, {bulk("!0"), false}, {bulk("?"), false},
	}
	good := func() {
		t.Helper()
		faulttest.Eventually(t, "takes are answered", func() error {
			_, _, err := s.Take(t.Context(), nil, chargesOf("k"), mete.Mode{})
			return err
		})
	}
	good()
	for _, tt := range tests {
		next.Store(&tt.reply)
		before := given.Load()
		faulttest.Eventually(t, "it is answered", func() error { // on a slow machine, a take can time out before it is sent
			snaps, allowed, err := s.Take(t.Context(), nil, chargesOf("k"), mete.Mode{})
			if err == nil || mete.Spent(err) != mete.MaybeSpent {
				t.Errorf("reply %q: %v, %v, %v; want an error that says maybe spent", tt.reply, snaps, allowed, err)
			}
			if given.Load() == before {
				return errors.New("nobody has asked yet")
			}
			return nil
		})
		next.Store(nil)
		conn := f.last.Load()
		good()
		if tt.drops && f.last.Load() == conn {
			t.Errorf("reply %q: the connection is used again", tt.reply)
		}
	}
}

// TestFault_SilentAfterSpoiled proves that takes that are retried one by one do not each wait for a silent
// server.
func TestFault_SilentAfterSpoiled(t *testing.T) {
	faulttest.RunParallel(t)
	const timeout = 2 * time.Second // long enough for all to wait, even on a slow machine
	asked, goOn := make(chan struct{}), make(chan struct{})
	calls := 0 // one connection at a time
	f := &fakeRedis{answer: func() (string, bool) {
		switch calls++; calls {
		case 3: // after an unknown script hash, and the script's text
			close(asked)
			<-goOn
		case 4:
			return bulk("!1"), true
		}
		return "", calls > 4
	}}
	s, _ := dialURL(t, "redis://"+startFake(t, f), redisstore.Config{Timeout: timeout, MaxInFlight: 1})
	var takes sync.WaitGroup
	take := func(i int) {
		_, _, err := s.Take(t.Context(), nil, chargesOf(fmt.Sprint("k", i)), mete.Mode{})
		if i > 0 && err == nil {
			t.Errorf("take %d was answered by nobody", i)
		}
	}
	take(0)
	takes.Go(func() { take(0) })
	<-asked
	const batch = 40
	for i := range batch {
		takes.Go(func() { take(1 + i) })
	}
	faulttest.Eventually(t, "all wait", func() error {
		if got := s.Stats().Waiting; got != batch {
			return fmt.Errorf("%d wait", got)
		}
		return nil
	})
	began := time.Now()
	close(goOn)
	takes.Wait()
	if took := time.Since(began); took > 4*timeout+2*slack {
		t.Errorf("%d takes failed after %v, want some %v", batch, took, 2*timeout)
	}
}
