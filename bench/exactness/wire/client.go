// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// A Client is a [Limiter] in another process.
type Client struct {
	Version string // of the contender

	cmd   *exec.Cmd
	input io.WriteCloser

	mu      sync.Mutex
	last    int
	waiting map[int]chan Response
	ended   error // after the output has ended
}

// startTimeout bounds the time until the first response.
const startTimeout = time.Minute

// Start runs a program with a setup and waits until it is ready. Close ends it.
func Start(cmd *exec.Cmd, s Setup) (*Client, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	cmd.Args = append(cmd.Args, string(text))
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	c := &Client{cmd: cmd, waiting: map[int]chan Response{}}
	if c.input, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	ready := make(chan Response, 1)
	c.waiting[0] = ready
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go c.read(output)
	select {
	case r, ok := <-ready:
		if ok {
			c.Version = r.Version
			return c, nil
		}
		err = c.ended
	case <-time.After(startTimeout):
		err = errors.New("it is not ready")
	}
	c.Close()
	return nil, fmt.Errorf("%s: %w", cmd.Path, err)
}

func (c *Client) read(output io.Reader) {
	lines := bufio.NewScanner(output)
	err := io.ErrUnexpectedEOF
	for lines.Scan() {
		var r Response
		if err = json.Unmarshal(lines.Bytes(), &r); err != nil {
			err = fmt.Errorf("response %q: %w", lines.Text(), err)
			break
		}
		c.mu.Lock()
		reply := c.waiting[r.ID]
		delete(c.waiting, r.ID)
		c.mu.Unlock()
		if reply != nil {
			reply <- r
		}
		err = io.ErrUnexpectedEOF
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = err
	for _, reply := range c.waiting {
		close(reply)
	}
	clear(c.waiting)
}

func (c *Client) ask(ctx context.Context, r Request) (Response, error) {
	reply := make(chan Response, 1)
	c.mu.Lock()
	if c.ended != nil {
		c.mu.Unlock()
		return Response{}, c.ended
	}
	c.last++
	r.ID = c.last
	c.waiting[r.ID] = reply
	text, err := json.Marshal(r)
	if err == nil {
		_, err = c.input.Write(append(text, '\n'))
	}
	c.mu.Unlock()
	if err != nil {
		return Response{}, err
	}
	var response Response
	ok := true
	select {
	case response, ok = <-reply:
	case <-ctx.Done():
		return response, ctx.Err()
	}
	switch {
	case !ok:
		return response, errors.New("the process ended")
	case response.Error == ErrUnsupported.Error():
		return response, ErrUnsupported
	case response.Error != "":
		return response, errors.New(response.Error)
	}
	return response, nil
}

// Take asks the process.
func (c *Client) Take(ctx context.Context, keys []string) (bool, time.Duration, error) {
	r, err := c.ask(ctx, Request{Keys: keys})
	return r.Allowed, r.Retry, err
}

// Change asks the process.
func (c *Client) Change(limits []Limit) error {
	_, err := c.ask(context.Background(), Request{Limits: limits})
	return err
}

// Close ends the process.
func (c *Client) Close() {
	_ = c.input.Close()
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}
