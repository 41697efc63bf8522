// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// callerKeys is how many keys each caller asks for, in turn.
const callerKeys = 500

// ask asks for decisions over one connection, each as soon as the last is answered,
// until ctx ends. It costs little, so that the server gets the machine.
func ask(ctx context.Context, addr string, caller int) (decided int64, err error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	requests := make([][]byte, callerKeys)
	for i := range requests {
		body := fmt.Sprintf(`{"attributes":{"header:x-api-key":"user:%02d-%08d","header:x-plan":%q,"path":"/v1/things"}}`,
			caller, i, []string{"free", "enterprise"}[i%2])
		requests[i] = fmt.Appendf(nil, "POST /v1/take HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", addr, len(body), body)
	}
	in := bufio.NewReader(conn)
	for ctx.Err() == nil {
		if _, err := conn.Write(requests[decided%callerKeys]); err != nil {
			return decided, err
		}
		if err := answered(in); err != nil {
			return decided, err
		}
		decided++
	}
	return decided, nil
}

var (
	allowed = []byte("HTTP/1.1 200 ")
	denied  = []byte("HTTP/1.1 429 ")
	length  = []byte("Content-Length: ")
)

// answered reads one answer, which must be a decision.
func answered(in *bufio.Reader) error {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(line, allowed) && !bytes.HasPrefix(line, denied) {
		return fmt.Errorf("the server answers %q", bytes.TrimSpace(line))
	}
	body := -1
	for len(bytes.TrimSpace(line)) > 0 {
		if line, err = in.ReadSlice('\n'); err != nil {
			return err
		}
		if n, ok := bytes.CutPrefix(line, length); ok {
			if body, err = strconv.Atoi(string(bytes.TrimSpace(n))); err != nil {
				return err
			}
		}
	}
	if body < 0 {
		return errors.New("an answer does not say how long it is")
	}
	_, err = in.Discard(body)
	return err
}

// A viewer is dashboards that are open.
type viewer struct {
	stop func()
	ends chan ended
	n    int
}

// ended is how one of them ended.
type ended struct {
	events int
	err    error
}

// look opens so many dashboards: each the stream that a page reads as long as it is
// looked at. It returns when all have begun.
func (s *server) look(ctx context.Context, n int) (*viewer, error) {
	ctx, cancel := context.WithCancel(ctx)
	v := &viewer{stop: cancel, ends: make(chan ended, n), n: n}
	begun := make(chan struct{}, n)
	for range n {
		go func() {
			events, err := watch(ctx, s.admin, func() { begun <- struct{}{} })
			v.ends <- ended{events, err}
		}()
	}
	for range n {
		select {
		case <-begun:
		case e := <-v.ends:
			cancel()
			return nil, fmt.Errorf("a dashboard does not open: %w", e.err)
		}
	}
	return v, nil
}

// close closes them, and returns how many events they were sent. The error is of one
// that has not lasted.
func (v *viewer) close() (events int, lost error) {
	v.stop()
	for range v.n {
		e := <-v.ends
		events += e.events
		lost = errors.Join(lost, e.err)
	}
	return events, lost
}

// watch reads one stream until ctx ends. It says when the first event has come.
func watch(ctx context.Context, addr string, begun func()) (events int, err error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	leave := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer conn.Close()
	defer leave()
	if _, err := fmt.Fprintf(conn, "GET /dashboard/data/stream HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\nAccept-Encoding: gzip, deflate, br\r\nSec-Fetch-Site: same-origin\r\n\r\n", addr); err != nil {
		return 0, err
	}
	in := bufio.NewReaderSize(conn, 64<<10)
	status, err := in.ReadString('\n')
	if err != nil || status != "HTTP/1.1 200 OK\r\n" {
		return 0, errors.Join(err, fmt.Errorf("the server answers %q", status))
	}
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull): // the history is long
		case ctx.Err() != nil:
			return events, nil
		case errors.Is(err, io.EOF):
			return events, errors.New("the server has ended the stream")
		case err != nil:
			return events, err
		}
		if bytes.HasPrefix(line, []byte("event: ")) {
			if events++; events == 1 {
				begun()
			}
		}
	}
}
