// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/metehq/mete/policy"
)

// Bounds of the backoff between connection attempts.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 2 * time.Second
)

// lookPause is the shortest interval between two reads of the revision. Any user of a database can notify any
// channel at any rate.
const lookPause = 50 * time.Millisecond

// Watch follows the tables until ctx ends. The parameter since is the revision of the previous [Source.Load]. For
// each other revision, Watch calls changed once with the results of Load: a policy, or an [Errors]. Calls are
// sequential.
// Connection errors are not passed to changed: Watch logs them and reconnects.
//
// Watch uses one connection for notifications, and also polls the revision every [Config.Poll]. A pooler that
// assigns connections per transaction cannot deliver notifications, and neither can a replica. Watch then polls
// at a shorter interval.
func (s *Source) Watch(ctx context.Context, since int64, opts policy.Options, changed func(*policy.Matcher, int64, error)) {
	w := &watcher{Source: s, opts: opts, changed: changed, seen: since}
	for pause := minBackoff; ctx.Err() == nil; pause = min(2*pause, maxBackoff) {
		answered, err := w.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if answered {
			pause = minBackoff
		}
		w.noteLoss(err)
		sleep(ctx, pause/2+rand.N(pause)) // nodes must not reconnect all at once
	}
}

const applicationName = "mete"

type watcher struct {
	*Source
	opts     policy.Options
	changed  func(*policy.Matcher, int64, error)
	seen     int64 // the last revision that was processed
	notified bool  // notified since the last read
	failing  bool  // and logged
	polling  bool  // and logged
}

func (w *watcher) noteLoss(err error) {
	if !w.failing {
		w.config.Logger.Warn("cannot follow rules in the database, keeping the active rules", "err", err)
	}
	w.failing = true
}

func (w *watcher) noteRecovery() {
	if w.failing {
		w.config.Logger.Info("following rules in the database again")
	}
	w.failing = false
}

// follow connects and follows the tables until the connection is lost or ctx ends. It reports whether the server
// answered.
func (w *watcher) follow(ctx context.Context) (answered bool, err error) {
	conn, err := w.connect(ctx)
	if err != nil {
		return false, err
	}
	defer closeConn(conn)
	listening, err := w.listen(ctx, conn)
	if err != nil {
		return false, err
	}
	for {
		looked := time.Now()
		if err := w.readIfChanged(ctx, conn); err != nil {
			return answered, err
		}
		answered = true
		w.noteRecovery()
		if err := w.wait(ctx, conn, listening); err != nil {
			return true, err
		}
		sleep(ctx, time.Until(looked.Add(lookPause)))
	}
}

func sleep(ctx context.Context, d time.Duration) {
	rest := time.NewTimer(d)
	defer rest.Stop()
	select {
	case <-ctx.Done():
	case <-rest.C:
	}
}

// connect opens the connection with the application name "mete rules".
func (w *watcher) connect(ctx context.Context) (*pgx.Conn, error) {
	config := w.pool.Config().ConnConfig.Copy()
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // leaves no state in the server
	config.StatementCacheCapacity, config.DescriptionCacheCapacity = 0, 0
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectTimeout)
	// A flag suffices: a flood of notifications uses no memory.
	config.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) { w.notified = true }
	if config.RuntimeParams["application_name"] == applicationName {
		config.RuntimeParams["application_name"] += " rules"
	}
	return pgx.ConnectConfig(ctx, config)
}

func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// listen enables notifications, and reports false if they cannot work. A pooler reports an invented process ID,
// and a replica sends no notifications.
func (w *watcher) listen(ctx context.Context, conn *pgx.Conn) (listening bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var process uint32
	var follows bool
	const ask = "SELECT pg_catalog.pg_backend_pid(), pg_catalog.pg_is_in_recovery()"
	if err := conn.QueryRow(ctx, ask, pgx.QueryExecModeExec).Scan(&process, &follows); err != nil {
		return false, err
	}
	if listening = process == conn.PgConn().PID() && !follows; listening {
		_, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{w.config.Schema}.Sanitize())
		if _, refused := errors.AsType[*pgconn.PgError](err); !refused {
			return true, err
		}
		listening = false
	}
	if !w.polling {
		w.config.Logger.Info("polling rules: no notifications through a pooler or from a replica", "every", w.pollInterval(listening))
	}
	w.polling = true
	return false, nil
}

func (w *watcher) pollInterval(listening bool) time.Duration {
	if listening {
		return w.config.Poll
	}
	return min(w.config.Poll, PooledPoll)
}

// wait returns when there may be a change, or when the connection is lost.
func (w *watcher) wait(ctx context.Context, conn *pgx.Conn, listening bool) error {
	limited, cancel := context.WithTimeout(ctx, w.pollInterval(listening))
	defer cancel()
	if !listening {
		<-limited.Done()
		return ctx.Err()
	}
	if w.notified { // notified since the last read began
		return nil
	}
	_, err := conn.WaitForNotification(limited)
	if err != nil && ctx.Err() == nil && limited.Err() != nil && !conn.IsClosed() {
		return nil // timeout without a notification
	}
	return err
}

func (w *watcher) readIfChanged(ctx context.Context, conn *pgx.Conn) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	w.notified = false
	var revision int64
	if err := conn.QueryRow(limited, w.qualify(selectRevision), pgx.QueryExecModeExec).Scan(&revision); err != nil {
		return w.explainMissing(ctx, err)
	}
	if revision == w.seen {
		return nil
	}
	set, err := w.read(ctx, conn, activeRows)
	if mistakes, broken := errors.AsType[Errors](err); broken {
		w.seen = revision
		w.changed(nil, revision, mistakes)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the rules: %w", err)
	}
	w.seen = set.Revision
	m, err := set.Compile(w.opts)
	w.changed(m, set.Revision, err)
	return nil
}
