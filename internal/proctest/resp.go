// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// commandTimeout is the time limit of one command, including the connection.
const commandTimeout = 20 * time.Second

// runCommand sends one command on a new connection and returns the reply as text. Error replies become errors.
func runCommand(addr string, config *tls.Config, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	conn, err := dial(ctx, addr, config)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	if _, err := conn.Write(encode(args)); err != nil {
		return "", err
	}
	return readReply(bufio.NewReader(conn))
}

func dial(ctx context.Context, addr string, config *tls.Config) (net.Conn, error) {
	if config == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
	return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", addr)
}

func encode(args []string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, arg := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return b
}

// readReply reads a RESP2 reply as text: one line per element of nested arrays. Nil is the empty string.
func readReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return "", errors.New("empty line in place of a reply")
	}
	switch kind, rest := line[0], line[1:]; kind {
	case '+', ':':
		return rest, nil
	case '-':
		return "", errors.New(rest)
	case '$':
		size, err := strconv.Atoi(rest)
		if err != nil || size < 0 {
			return "", err
		}
		text := make([]byte, size+len("\r\n"))
		_, err = io.ReadFull(r, text)
		return string(text[:size]), err
	case '*':
		size, err := strconv.Atoi(rest)
		if err != nil || size < 0 {
			return "", err
		}
		return readElements(r, size)
	default:
		return "", fmt.Errorf("reply begins with %q", line)
	}
}

func readElements(r *bufio.Reader, n int) (string, error) {
	var elements []string
	for range n {
		element, err := readReply(r)
		if err != nil {
			return "", err
		}
		elements = append(elements, element)
	}
	return strings.Join(elements, "\n"), nil
}
