// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete/bench/daemon"
	"github.com/metehq/mete/pgstore"
)

// A server is a new PostgreSQL server with the settings of initdb: commits of logged tables wait for the disk.
type server struct {
	programs    string // directory, or empty
	parent      string // parent of its directory
	connections int

	addr    string
	version string
	control *pgx.Conn // a connection that no limiter uses

	dir    string
	daemon *daemon.Daemon
}

// start makes a server and starts it on a free loopback port. It ends with ctx or stop.
func (s *server) start(ctx context.Context) error {
	if err := s.launch(ctx); err != nil {
		s.stop()
		return err
	}
	return nil
}

func (s *server) launch(ctx context.Context) error {
	initdb, postgres, err := s.find()
	if err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp(s.parent, "mete-bench-postgres-"); err != nil {
		return err
	}
	user, err := serverUser(s.dir)
	if err != nil {
		return err
	}
	data := filepath.Join(s.dir, "data")
	cmd := exec.CommandContext(ctx, initdb, "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-instructions")
	cmd.Dir, cmd.SysProcAttr = s.dir, user
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", initdb, err, output)
	}
	host, port, addr, err := daemon.FreeAddr()
	if err != nil {
		return err
	}
	s.addr = addr
	cmd = exec.Command(postgres, "-D", data, "-c", "listen_addresses="+host, "-c", "port="+port, "-c", "unix_socket_directories=")
	cmd.Dir, cmd.SysProcAttr = s.dir, user
	s.daemon, err = daemon.Start(ctx, cmd, s.connect)
	return err
}

// find returns initdb and postgres of one version: the given ones, or those in PATH, or the newest in
// Debian's directories.
func (s *server) find() (initdb, postgres string, err error) {
	dirs := []string{s.programs}
	if s.programs == "" {
		if path, err := exec.LookPath("initdb"); err == nil {
			if path, err = filepath.EvalSymlinks(path); err == nil {
				dirs[0] = filepath.Dir(path)
			}
		}
		debian, _ := filepath.Glob("/usr/lib/postgresql/[1-9][0-9]/bin")
		for i := len(debian) - 1; i >= 0; i-- {
			dirs = append(dirs, debian[i])
		}
	}
	for _, dir := range dirs {
		initdb, _ = exec.LookPath(filepath.Join(dir, "initdb"))
		postgres, _ = exec.LookPath(filepath.Join(dir, "postgres"))
		if dir != "" && initdb != "" && postgres != "" {
			return initdb, postgres, nil
		}
	}
	return "", "", fmt.Errorf("no initdb and postgres in %q: install PostgreSQL, or set -programs DIRECTORY", dirs)
}

func (s *server) url() string { return "postgres://postgres@" + s.addr + "/postgres?sslmode=disable" }

// connect fails until the server answers.
func (s *server) connect(ctx context.Context) (err error) {
	if s.control == nil {
		if s.control, err = pgx.Connect(ctx, s.url()); err != nil {
			s.control = nil
			return err
		}
	}
	if err := s.control.QueryRow(ctx, "SHOW server_version").Scan(&s.version); err != nil {
		return err
	}
	s.version, _, _ = strings.Cut(s.version, " ") // Debian adds text
	return nil
}

func (s *server) stop() {
	if s.control != nil {
		_ = s.control.Close(context.Background())
	}
	if s.daemon != nil {
		s.daemon.Stop()
	}
	_ = os.RemoveAll(s.dir)
}

// empty drops the data of a subject and runs a checkpoint, so that the next subject does not pay for it.
func (s *server) empty(ctx context.Context) error {
	for _, sql := range []string{
		"DROP SCHEMA IF EXISTS public, " + pgstore.DefaultSchema + " CASCADE",
		"CREATE SCHEMA public",
		"CHECKPOINT",
	} {
		if _, err := s.control.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// settle runs the maintenance that the server would start at an unpredictable time.
func (s *server) settle(ctx context.Context) error {
	_, err := s.control.Exec(ctx, "VACUUM ANALYZE")
	return err
}
