    CREATE TABLE store (
        id INTEGER PRIMARY KEY,  -- 1
        run_ids INTEGER NOT NULL DEFAULT 0,
        checksum INTEGER
    );
    INSERT INTO store (id) VALUES (1);
    CREATE TABLE run (
        id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never given twice: people write it down
        store_id INTEGER NOT NULL DEFAULT 1 REFERENCES store (id),
        command TEXT NOT NULL,
        suite TEXT NOT NULL,
        label TEXT,
        started_unix_s REAL NOT NULL,
        finished_unix_s REAL,
        measured_s REAL NOT NULL DEFAULT 0,  -- up to the last write, by a clock that nobody sets
        seed INTEGER NOT NULL,
        version TEXT NOT NULL,  -- of hockney
        status TEXT NOT NULL,
        rounds INTEGER NOT NULL DEFAULT 0,  -- written so far
        facts TEXT NOT NULL,  -- JSON
        plan TEXT NOT NULL,  -- JSON
        launch_ids INTEGER NOT NULL DEFAULT 0,
        point_ids INTEGER NOT NULL DEFAULT 0,
        warning_ids INTEGER NOT NULL DEFAULT 0,
        checksum INTEGER
    );
    CREATE TABLE launch (
        id INTEGER PRIMARY KEY,
        run_id INTEGER NOT NULL REFERENCES run (id),
        launch_index INTEGER NOT NULL,  -- which of the asked --launches
        transport TEXT NOT NULL,
        library TEXT NOT NULL,
        ranks INTEGER NOT NULL,
        started_unix_s REAL NOT NULL,
        argv TEXT NOT NULL,  -- JSON
        cpus TEXT NOT NULL,  -- JSON, a number per rank; -1 is unknown
        hosts TEXT NOT NULL,  -- JSON, a name per rank
        bound TEXT NOT NULL,  -- JSON, the CPUs that each rank may run on
        oversubscribed INTEGER NOT NULL,
        clock_ns REAL NOT NULL,
        checksum INTEGER
    );
    CREATE INDEX launch_by_run ON launch (run_id);
    CREATE TABLE point (
        id INTEGER PRIMARY KEY,
        run_id INTEGER NOT NULL REFERENCES run (id),
        transport TEXT NOT NULL,
        pattern TEXT NOT NULL,
        ranks INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        options TEXT NOT NULL,  -- JSON object of text, names sorted
        role TEXT NOT NULL,
        status TEXT NOT NULL,
        reason TEXT,
        measurement_ids INTEGER NOT NULL DEFAULT 0,
        checksum INTEGER,
        UNIQUE (run_id, transport, pattern, ranks, bytes, options)
    );
    CREATE TABLE measurement (
        id INTEGER PRIMARY KEY,
        point_id INTEGER NOT NULL REFERENCES point (id),
        launch_id INTEGER NOT NULL REFERENCES launch (id),
        round INTEGER NOT NULL,
        started_unix_s REAL NOT NULL,
        started_ns INTEGER,  -- by the kernel's clock; NULL: virtual time
        batch INTEGER NOT NULL,
        timed TEXT NOT NULL,
        divisor INTEGER NOT NULL,
        bytes_per_rep INTEGER NOT NULL,
        messages_per_rep INTEGER NOT NULL,
        algorithm TEXT,
        samples INTEGER NOT NULL,
        median_ns REAL,  -- of the pattern's time by its definition, as the next two; NULL without samples
        min_ns REAL,
        max_ns REAL,
        total_ns REAL,  -- of all samples; NULL without any
        slow_ns TEXT,  -- JSON, excess over the median of each sample above twice the median; NULL: none is
        floor_before_ns REAL,
        floor_after_ns REAL,
        floor_kind TEXT,
        solo_before_ns REAL,
        solo_after_ns REAL,
        wake_before_ns REAL,  -- NULL: ranks do not sleep while they wait
        wake_after_ns REAL,
        pace_ns TEXT,  -- JSON, before and after, each a number per rank
        steal REAL,
        verified INTEGER NOT NULL,
        cpu_user_ns TEXT NOT NULL,  -- JSON, a number per rank; so are the next two
        cpu_system_ns TEXT NOT NULL,
        wall_ns TEXT NOT NULL,
        counters TEXT,  -- JSON, a list by name; NULL where nothing is counted
        samples_crc INTEGER NOT NULL,  -- of the blob in measurement_samples
        checksum INTEGER
    );
    CREATE INDEX measurement_by_point ON measurement (point_id);
    CREATE TABLE measurement_samples (  -- a separate table, so that reading all medians reads no samples
        measurement_id INTEGER PRIMARY KEY REFERENCES measurement (id),
        elapsed_ns BLOB NOT NULL  -- codec.py
    );
    CREATE TABLE warning (
        id INTEGER PRIMARY KEY,
        run_id INTEGER NOT NULL REFERENCES run (id),
        kind TEXT NOT NULL,
        subject TEXT NOT NULL,
        cause TEXT NOT NULL,
        remedy TEXT NOT NULL,
        checksum INTEGER,
        UNIQUE (run_id, kind, subject, cause, remedy)
    );
