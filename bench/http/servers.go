// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"github.com/metehq/mete/bench/daemon"
)

// policy allows every request, and leaves every bucket less than full.
//
//go:embed policy.yaml
var policy []byte

// The configurations of nginx: the upstream, and the gateways in front of it. Words in capitals are replaced
// by addresses.
var (
	//go:embed upstream.conf
	upstreamConf string
	//go:embed gateway.conf
	gatewayConf string
)

func (s *stage) startAPI(ctx context.Context) (*server, error) {
	return s.startOnce("api", func() (*server, error) { return s.startMete(ctx, nil, "api.yaml", "") })
}

func (s *stage) startGateway(ctx context.Context) (*server, error) {
	return s.startOnce("gate", func() (*server, error) {
		upstream, err := s.startUpstream(ctx)
		if err != nil {
			return nil, err
		}
		return s.startMete(ctx, nil, "gate.yaml", "upstream: "+upstream.url+"\n")
	})
}

func (s *stage) startMete(ctx context.Context, variables []string, name, settings string) (*server, error) {
	_, _, addr, err := daemon.FreeAddr()
	if err != nil {
		return nil, err
	}
	config, err := s.write(name, []byte(fmt.Sprintf("listen: %s\nadmin_listen: 127.0.0.1:0\npolicy: policy.yaml\n%s", addr, settings)))
	if err != nil {
		return nil, err
	}
	return s.startServer(ctx, variables, addr, s.mete, "serve", "--config", config)
}

// constantAnswer starts a server that always returns mete's answer to r.
func (s *stage) constantAnswer(r request) func(context.Context) (*server, error) {
	name := fmt.Sprintf("answer-%d", len(r.body))
	return func(ctx context.Context) (*server, error) {
		return s.startOnce(name, func() (*server, error) {
			answer, err := s.fetchAnswer(ctx, r)
			if err != nil {
				return nil, err
			}
			file, err := s.write(name, answer)
			if err != nil {
				return nil, err
			}
			return s.startBare(ctx, "-answer", file)
		})
	}
}

func (s *stage) fetchAnswer(ctx context.Context, r request) ([]byte, error) {
	api, err := s.startAPI(ctx)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, r.method, api.url+r.path, strings.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

func (s *stage) startBareProxy(ctx context.Context) (*server, error) {
	return s.startOnce("bare gate", func() (*server, error) {
		upstream, err := s.startUpstream(ctx)
		if err != nil {
			return nil, err
		}
		return s.startBare(ctx, "-upstream", upstream.url)
	})
}

func (s *stage) startBare(ctx context.Context, args ...string) (*server, error) {
	_, _, addr, err := daemon.FreeAddr()
	if err != nil {
		return nil, err
	}
	return s.startServer(ctx, nil, addr, s.floor, append([]string{"-listen", addr}, args...)...)
}

func (s *stage) startUpstream(ctx context.Context) (*server, error) {
	return s.startOnce("upstream", func() (*server, error) {
		return s.startNginx(ctx, "upstream", upstreamConf, "ANSWER", strings.Repeat("0123456789abcde ", 64))
	})
}

func (s *stage) startNginxAlone(ctx context.Context) (*server, error) {
	return s.startOnce("alone", func() (*server, error) {
		upstream, err := s.startUpstream(ctx)
		if err != nil {
			return nil, err
		}
		return s.startNginx(ctx, "alone", gatewayConf, "UPSTREAM", address(upstream), "METE", address(upstream), "ASK", "off")
	})
}

// startNginxAsking starts an nginx that calls mete. The processor time includes mete's.
func (s *stage) startNginxAsking(name string, variables ...string) func(context.Context) (*server, error) {
	return func(ctx context.Context) (*server, error) {
		return s.startOnce(name, func() (*server, error) {
			upstream, err := s.startUpstream(ctx)
			if err != nil {
				return nil, err
			}
			asked, err := s.startMete(ctx, variables, name+".yaml", "decision_profile: nginx\ntrusted_proxies: [127.0.0.1]\n")
			if err != nil {
				return nil, err
			}
			front, err := s.startNginx(ctx, name, gatewayConf, "UPSTREAM", address(upstream), "METE", address(asked), "ASK", "/_limit")
			if err != nil {
				return nil, err
			}
			front.pids = append(front.pids, asked.pids...)
			return front, nil
		})
	}
}

func address(s *server) string { return strings.TrimPrefix(s.url, "http://") }

// startNginx starts nginx as one process. The words are replacements for the configuration.
func (s *stage) startNginx(ctx context.Context, name, conf string, words ...string) (*server, error) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		// Debian installs nginx outside of the users' PATH.
		if program, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			return nil, fmt.Errorf("%w: install it", err)
		}
	}
	_, _, addr, err := daemon.FreeAddr()
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(s.dir+"/"+name, 0o700); err != nil {
		return nil, err
	}
	file, err := s.write(name+"/nginx.conf", []byte(strings.NewReplacer(append(words, "LISTEN", addr)...).Replace(conf)))
	if err != nil {
		return nil, err
	}
	return s.startServer(ctx, nil, addr, program, "-p", s.dir+"/"+name, "-e", "stderr", "-c", file)
}
