/// Version 37 adds tables of homes, and of the node of each shard.
///
/// `node` has the last incarnation of a home on each node. A home with an earlier or a removed incarnation cannot write. `shard`
/// has the node of each shard, and the epoch of its positions. The one row of `shard_map` is the number of changes of `shard`.
enum HomeSchema {
    static let changes = """
        CREATE TABLE node (
            number INTEGER PRIMARY KEY,
            incarnation INTEGER NOT NULL,
            is_removed INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE shard (
            number INTEGER PRIMARY KEY CHECK (number BETWEEN 0 AND 1023),
            node INTEGER NOT NULL,
            epoch INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE shard_map (
            serial INTEGER PRIMARY KEY CHECK (serial = 1),
            version INTEGER NOT NULL
        ) STRICT;
        INSERT INTO shard_map VALUES (1, 0);
        """
}
