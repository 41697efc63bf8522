// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
)

// callerKeys is the number of keys that each caller uses in turn.
const callerKeys = 500

// ask sends decisions over one connection until ctx ends, each after the last answer. It uses little
// processor time, so that the server gets the rest.
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
		if err := readAnswer(in); err != nil {
			return decided, err
		}
		decided++
	}
	return decided, nil
}

var (
	decision = []byte("HTTP/1.1 200 ") // allowed or denied
	length   = []byte("Content-Length: ")
)

func readAnswer(in *bufio.Reader) error {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(line, decision) {
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
		return errors.New("response has no Content-Length")
	}
	_, err = in.Discard(body)
	return err
}
