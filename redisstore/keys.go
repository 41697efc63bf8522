// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/metehq/mete/store"
)

// memoryKey returns the key that remembers a take by ID, in the slot of the bucket with this key.
func (s *Store) memoryKey(id string, charges []store.Charge, key string) string {
	return s.companionKey("id:", key, hashID(id, charges))
}

// hashID returns a hash of an ID and the keys of its charges.
func hashID(id string, charges []store.Charge) string {
	h := sha256.New()
	for i := -1; i < len(charges); i++ {
		part := id
		if i >= 0 {
			part = charges[i].Key
		}
		_, _ = h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part)))) // never fails
		_, _ = h.Write([]byte(part))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:18])
}

func (s *Store) leaseKey(key string) string { return s.companionKey("lease:", key, key) }

// dueKey returns the key that lists the refunds of a bucket's expired holds.
func (s *Store) dueKey(key string) string { return s.companionKey("due:", key, key) }

// companionKey returns a key of another kind, in the cluster slot of a bucket's key.
func (s *Store) companionKey(kind, key, name string) string {
	if _, tagged := hashTag(s.config.Prefix); tagged || !s.cluster {
		return s.config.Prefix + kind + name
	}
	tag, ok := hashTag(key)
	if !ok {
		tag = tags()[s.slot(key)]
	}
	return s.config.Prefix + kind + "{" + tag + "}" + name
}
