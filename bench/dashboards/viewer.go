// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// topEvery is the interval at which the overview of the dashboard loads the most denied keys.
const topEvery = 4 * time.Second

// viewers are open dashboards, each on its overview page.
type viewers struct {
	stop context.CancelFunc
	ends chan ended
	n    int
}

type ended struct {
	events int
	err    error
}

// openViewers opens n dashboards and returns when all of them have started.
func (s *server) openViewers(ctx context.Context, n int) (*viewers, error) {
	ctx, cancel := context.WithCancel(ctx)
	v := &viewers{stop: cancel, ends: make(chan ended, n), n: n}
	begun := make(chan struct{}, n)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}}
	for range n {
		go func() {
			asked := make(chan error, 1)
			go func() { asked <- askTop(ctx, client, s.admin) }()
			events, err := watch(ctx, s.admin, func() { begun <- struct{}{} })
			if err != nil {
				cancel()
			}
			v.ends <- ended{events, errors.Join(err, <-asked)}
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

// close closes the dashboards and returns the number of events that they received. The error tells why
// dashboards ended early.
func (v *viewers) close() (events int, lost error) {
	v.stop()
	for range v.n {
		e := <-v.ends
		events += e.events
		lost = errors.Join(lost, e.err)
	}
	return events, lost
}

// askTop loads the most denied keys repeatedly until ctx ends.
func askTop(ctx context.Context, client *http.Client, addr string) error {
	wait := time.NewTimer(rand.N(topEvery)) // dashboards are not opened at the same moment
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-wait.C:
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/v1/top?kind=denied&limit=8", nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			err = errors.Join(err, resp.Body.Close())
			if resp.StatusCode != http.StatusOK {
				err = fmt.Errorf("GET /v1/top: %s", resp.Status)
			}
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		wait.Reset(topEvery)
	}
}

// watch reads the events that the server sends each second, until ctx ends. It calls begun after the first.
func watch(ctx context.Context, addr string, begun func()) (events int, err error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	leave := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer conn.Close()
	defer leave()
	if _, err := fmt.Fprintf(conn, "GET /v1/traffic/stream HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\nAccept-Encoding: gzip, deflate, br\r\nSec-Fetch-Site: same-origin\r\n\r\n", addr); err != nil {
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
			return events, errors.New("the server closed the stream")
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
