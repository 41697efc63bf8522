// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/atomicfile"
)

// Save writes the buckets that are not full to the file at path, from which
// [Restore] makes a store again, in another process. A
// file that was there is replaced in one step, when the new one is complete and
// on disk: whatever fails, the name stands for a whole file, or for none as
// before. Only the owner can read it: it holds the secret that keys are hashed
// under. A process that is killed meanwhile leaves a file path.*.tmp behind.
//
// Takes go on while the store is saved; those that need the lock of a shard wait
// for some ten microseconds, and for up to a hundred where it has sliding logs. So each bucket is written as it was at some instant
// during the save, and not all as they were at one. What is taken after that is
// not in the file. Save when nothing is taken any more, and nothing is forgiven;
// after a crash, each bucket has back what was taken from it since the last save
// began.
//
// What is remembered by [mete.Mode.ID] is not written: it is charged again if it
// is tried again after a restart.
//
// Calls wait for each other. The error is the operating system's.
func (s *Store) Save(path string) (err error) {
	s.saving.Lock()
	defer s.saving.Unlock()
	defer func() {
		if err != nil {
			err = fmt.Errorf("memstore: save: %w", err)
		}
	}()
	next, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, next, s.write)
}

// errInstant is the error of a store whose clock shows no instant of this world.
var errInstant = errors.New("the clock is out of bounds")

// write writes the whole file.
func (s *Store) write(f io.Writer) error {
	sum := sha256.New()
	e := encoder{to: io.MultiWriter(f, sum), saved: s.instant(), numbers: map[named]uint64{}}
	if e.saved < -mostInstant || e.saved > mostInstant {
		return errInstant
	}
	if _, err := fmt.Fprintf(e.to, "%s%d\n", formatName, formatVersion); err != nil {
		return err
	}
	secret := s.hasher.secret()
	if err := e.block(headBlock, append(binary.AppendVarint(nil, int64(e.saved)), secret[:]...)); err != nil {
		return err
	}
	if err := s.writeStates(&e); err != nil {
		return err
	}
	// Read last: by then it covers every overflow bucket that was written.
	overload := bucket.Instant(s.overload.Load())
	var tail []byte
	for _, at := range []bucket.Instant{overload, e.forgot} {
		tail = binary.AppendUvarint(tail, uint64(min(max(at-e.saved, 0), mostInstant)))
	}
	if err := e.block(tailBlock, tail); err != nil {
		return err
	}
	_, err := f.Write(sum.Sum(nil))
	return err
}

// writeStates writes all that is not full, shard by shard.
func (s *Store) writeStates(e *encoder) error {
	var c shardCopy
	for i := range s.shards {
		sh := &s.shards[i]
		c.read(s, sh)
		now := s.instant()
		e.forgot = max(e.forgot, c.forgot, now)
		var one [1]bucket.Account
		for j := range c.slots {
			sl := &c.slots[j]
			one[0] = bucket.Account{Limit: sl.entry.limit, State: s.decodeCopy(sl, now)}
			if err := e.write(sl.hash(), sl.entry.family, one[:], now); err != nil {
				return err
			}
		}
		for c.readAside(s, sh) {
			for j := range c.rows {
				if err := e.write(c.rows[j].hash, c.rows[j].family, c.rows[j].row, now); err != nil {
					return err
				}
			}
		}
	}
	if len(e.states) == 0 {
		return nil
	}
	return e.block(statesBlock, e.states)
}

// write encodes a row, unless it is full at now, and writes a block when it is long
// enough.
func (e *encoder) write(h hash, family string, row bucket.Row, now bucket.Instant) error {
	if forgettable(row, now) {
		return nil
	}
	if !e.add(h, family, row) {
		return errInstant
	}
	if len(e.states) < fullBlock {
		return nil
	}
	err := e.block(statesBlock, e.states)
	e.states = e.states[:0]
	return err
}

// forgettable reports whether a row that is left out at now can come back as a full
// one. One that is full only at an instant to come cannot: its time would run back.
func forgettable(row bucket.Row, now bucket.Instant) bool {
	for i := range row {
		if row[i].State.AsOf > now {
			return false
		}
	}
	return row.Full(now)
}
