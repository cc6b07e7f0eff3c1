import Crypto
import Foundation

/// Passes each push token once, independent of the case of its digits. It stores sixteen bytes for each token.
struct TokenSieve {
    private struct Fingerprint: Hashable {
        let first: UInt64
        let second: UInt64

        init(_ token: String) {
            var (first, second): (UInt64, UInt64) = (0, 0)
            for (index, byte) in SHA256.hash(data: Data(token.lowercased().utf8)).prefix(16).enumerated() {
                if index < 8 { first = first << 8 | UInt64(byte) } else { second = second << 8 | UInt64(byte) }
            }
            self.first = first
            self.second = second
        }
    }

    private var seen: Set<Fingerprint> = []
    /// The number of skipped tokens.
    private(set) var repeated = 0
    /// The bytes of skipped tokens in the file, which are added to the next token that is passed.
    private var bytes = 0

    mutating func letThrough(_ lines: [TokenLine]) -> [TokenLine] {
        lines.compactMap { line in
            guard seen.insert(Fingerprint(line.deviceToken)).inserted else {
                repeated += 1
                bytes += line.bytes
                return nil
            }
            defer { bytes = 0 }
            var line = line
            line.bytes += bytes
            return line
        }
    }
}
