// SPDX-License-Identifier: Apache-2.0

package violations

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 15 * time.Second
)

// lastRows is the number of rows per write after Close, which does not wait for windows.
const lastRows = 4096

type batch struct {
	rows     []*row
	denials  int64
	text     []byte // in the format of COPY, once the rows have numbers
	attempts int
}

func (r *Recorder) run() {
	defer close(r.ended)
	ticker := time.NewTicker(r.config.Window)
	defer ticker.Stop()
	var due upkeep
	var failing, flooded problem
	for {
		select {
		case <-r.closing.Done():
			r.finish(nil)
			return
		case <-ticker.C:
		}
		r.maintain(&due)
		b := r.gather(r.config.MaxRows)
		for i := range r.shards {
			r.shards[i].sweep()
		}
		r.others.sweep()
		if s := r.Stats(); flooded.shouldLogGrowth(s.Overflowed + s.Dropped) {
			r.config.Logger.Warn("too many denied keys to record, counting some violations only",
				"overflowed", s.Overflowed, "dropped", s.Dropped, "queue", s.Queue)
		}
		if b != nil && !r.deliver(b, &failing) {
			r.finish(b)
			return
		}
	}
}

// gather returns at most this many rows, from all shards in turn, or nil if there are none.
func (r *Recorder) gather(most int) *batch {
	rows := r.others.take(nil, most)
	share := max((most-len(rows))/shards, 1)
	for range 2 { // first an equal share of each, then the rest
		for i := range r.shards {
			rows = r.shards[(r.turn+i)%shards].take(rows, min(share, most-len(rows)))
		}
		share = most
	}
	r.turn++
	if len(rows) == 0 {
		return nil
	}
	b := &batch{rows: rows}
	for _, row := range rows {
		b.denials += row.count
	}
	return b
}

// deliver retries a batch until it is written or dropped. It returns false if the recorder is closed first.
func (r *Recorder) deliver(b *batch, failing *problem) bool {
	backoff := minBackoff
	for {
		err := r.attempt(r.writing, b)
		if err == nil {
			if failing.end() {
				r.config.Logger.Info("violation writes recovered")
			}
			return true
		}
		if failing.shouldLog() {
			r.config.Logger.Warn("cannot write violations, retrying", "err", err, "queue", r.Stats().Queue)
		}
		if isRejected(err) {
			r.dropped.Add(b.denials)
			return true
		}
		timer := time.NewTimer(backoff)
		select {
		case <-r.closing.Done():
			timer.Stop()
			return false
		case <-timer.C:
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// finish writes the remaining rows, b first, until the timeout of Close.
func (r *Recorder) finish(b *batch) {
	if b == nil {
		b = r.gather(lastRows)
	}
	for ; b != nil; b = r.gather(lastRows) {
		if r.writing.Err() == nil && r.attempt(r.writing, b) == nil {
			continue
		}
		r.dropped.Add(b.denials)
		r.giveUp() // further writes would fail, too
	}
}

func (r *Recorder) attempt(ctx context.Context, b *batch) error {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	if err := r.write(ctx, b); err != nil {
		r.failed.Add(1)
		return err
	}
	r.written.Add(b.denials)
	r.rows.Add(int64(len(b.rows)))
	return nil
}

// write writes a batch atomically. It can be retried after an error: rows keep their numbers, so a repeated write
// of committed rows is detected.
func (r *Recorder) write(ctx context.Context, b *batch) error {
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if b.text == nil {
		if err := r.assignNumbers(ctx, conn.Conn(), b); err != nil {
			return err
		}
	}
	b.attempts++
	_, err = conn.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(b.text), r.copySQL())
	if b.attempts > 1 && sqlState(err) == uniqueViolation {
		return nil
	}
	return err
}

// assignNumbers reads numbers for the rows and the time from the database, and encodes the rows.
func (r *Recorder) assignNumbers(ctx context.Context, conn *pgx.Conn, b *batch) error {
	var numbers []int64
	var micros int64
	err := conn.QueryRow(ctx, "SELECT numbers, "+instantSQL("at")+" FROM "+r.table("rate_limit_violation_numbers")+"($1::int)",
		pgx.QueryExecModeExec, len(b.rows)).Scan(&numbers, &micros)
	switch {
	case err != nil:
		return err
	case len(numbers) != len(b.rows):
		return fmt.Errorf("got %d IDs for %d rows", len(numbers), len(b.rows))
	}
	there, here := time.UnixMicro(micros), time.Now()
	if r.config.Now != nil {
		here = there // virtual time is the same on both sides
	}
	inTheirs := func(t time.Time) time.Time { return there.Add(t.Sub(here)) }
	for i, row := range b.rows {
		b.text = row.append(b.text, numbers[i], r.node, inTheirs)
	}
	return nil
}

func (r *Recorder) table(name string) string { return pgx.Identifier{r.config.Schema, name}.Sanitize() }

func (r *Recorder) copySQL() string {
	return "COPY " + r.table("rate_limit_violation") + " (" + strings.Join(columns, ", ") + ") FROM STDIN"
}

const uniqueViolation = "23505"

func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// isRejected reports whether the database rejects the rows themselves, so that a retry would fail again.
func isRejected(err error) bool {
	code := sqlState(err)
	return strings.HasPrefix(code, "22") || strings.HasPrefix(code, "23")
}
