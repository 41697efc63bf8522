// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"time"
)

// A notifier tells whoever started the server how it is, as systemd wants it told
// (sd_notify): a service of Type=notify is started when it says so, and with
// WatchdogSec= it is restarted when it falls silent. Where nobody listens, nothing
// is said. A reload is not told: the server is ready throughout.
type notifier struct {
	conn    net.Conn // nil: nobody listens
	silence func()   // ends the beating, and waits for it
}

// newNotifier finds out from the environment who listens, and begins to beat if that
// is wanted. It must be closed.
func newNotifier(log *slog.Logger) *notifier {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return &notifier{silence: func() {}}
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"}) // an @ in front is the abstract namespace
	if err != nil {
		log.Warn("the service manager cannot be told anything", "error", err)
		return &notifier{silence: func() {}}
	}
	n := &notifier{conn: conn, silence: func() {}}
	pid := os.Getenv("WATCHDOG_PID")
	usec, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err == nil && usec > 0 && usec <= int64(time.Hour/time.Microsecond) && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		n.beat(time.Duration(usec) * time.Microsecond / 2)
	}
	return n
}

// tellTimeout is how long a manager may take that does not read what it is told, and
// whose queue is full.
const tellTimeout = 100 * time.Millisecond

// tell sends one state. That it is lost must not end a server, nor hold it up.
func (n *notifier) tell(state string) {
	if n.conn != nil {
		_ = n.conn.SetWriteDeadline(time.Now().Add(tellTimeout))
		_, _ = n.conn.Write([]byte(state))
	}
}

func (n *notifier) ready()    { n.tell("READY=1\nSTATUS=Ready") }
func (n *notifier) stopping() { n.tell("STOPPING=1\nSTATUS=Answering the requests in flight") }

// beat keeps the watchdog quiet at intervals, also while the server ends.
func (n *notifier) beat(interval time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	var beating sync.WaitGroup
	beating.Go(func() {
		ticker := time.NewTicker(max(interval, time.Millisecond))
		defer ticker.Stop()
		for {
			n.tell("WATCHDOG=1")
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
	n.silence = func() { cancel(); beating.Wait() }
}

func (n *notifier) close() {
	n.silence()
	if n.conn != nil {
		n.conn.Close()
	}
}
