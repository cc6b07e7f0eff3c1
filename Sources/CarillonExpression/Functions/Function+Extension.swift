#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

extension Function {
    /// Computes the functions beyond the standard ones. Numbers of any type are used as doubles.
    func extended(
        _ one: ExpressionValue, _ two: ExpressionValue, _ three: ExpressionValue, _ four: ExpressionValue
    ) throws(Fault.Reason) -> ExpressionValue {
        switch self {
        case .crosses:
            let (previous, now, level) = (try number(one), try number(two), try number(three))
            return .bool(previous < level && now >= level || previous > level && now <= level)
        case .percentChange:
            let (before, after) = (try number(one), try number(two))
            guard before != 0 else { throw .divisionByZero }
            return .double((after - before) / before.magnitude * 100)
        case .within:
            guard case .map(let place) = one else { throw .noOverload }
            guard let latitude = place.value(for: "latitude"), let longitude = place.value(for: "longitude") else {
                throw .noSuchKey
            }
            let distance = Self.metres(
                from: (try number(latitude), try number(longitude)), to: (try number(two), try number(three)))
            return .bool(distance <= (try number(four)))
        case .version:
            guard case .string(let text) = one else { throw .noOverload }
            guard let key = VersionKey.bytes(of: text) else { throw .badText }
            return .bytes(key)
        default: throw .noOverload
        }
    }

    private func number(_ value: ExpressionValue) throws(Fault.Reason) -> Double {
        switch value {
        case .double(let number): return number
        case .int(let number): return Double(number)
        case .uint(let number): return Double(number)
        default: throw .noOverload
        }
    }

    /// Returns the distance on a sphere with the Earth's mean radius, by the haversine formula. The error is less than half a
    /// percent.
    private static func metres(from one: (Double, Double), to other: (Double, Double)) -> Double {
        let radians = Double.pi / 180
        let height = sin((other.0 - one.0) * radians / 2)
        let width = sin((other.1 - one.1) * radians / 2)
        let square = height * height + cos(one.0 * radians) * cos(other.0 * radians) * width * width
        // If a coordinate is not a number, the distance is not a number either, and is within no limit.
        return 2 * 6_371_008.8 * asin(square > 1 ? 1 : square.squareRoot())
    }
}

/// Versions as bytes whose order is the order of the versions (Semantic Versioning 2.0.0, section 11).
enum VersionKey {
    /// Returns nil for a text that is not one to four numbers with dots between them, an optional prerelease after `-`, and
    /// an optional build after `+`. The build is ignored.
    static func bytes(of text: String) -> [UInt8]? {
        let version = text.utf8.prefix { $0 != UInt8(ascii: "+") }
        let parts = version.split(separator: UInt8(ascii: "-"), maxSplits: 1, omittingEmptySubsequences: false)
        let numbers = parts[0].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard (1...4).contains(numbers.count) else { return nil }
        var key: [UInt8] = []
        for index in 0..<4 {
            guard let number = index < numbers.count ? bytes(ofNumber: Array(numbers[index])) : [0] else { return nil }
            key += number
        }
        // A prerelease is less than its release.
        guard parts.count > 1 else { return key + [2] }
        key.append(1)
        for identifier in parts[1].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
            guard !identifier.isEmpty, identifier.allSatisfy({ isLetter($0) || isDigit($0) }) else { return nil }
            if let number = bytes(ofNumber: Array(identifier)) {
                key += [1] + number
            } else {
                key += [2] + Array(identifier) + [0]
            }
        }
        return key + [0]
    }

    /// A longer number is greater, so its length is written before it.
    private static func bytes(ofNumber digits: [UInt8]) -> [UInt8]? {
        guard !digits.isEmpty, digits.allSatisfy(isDigit) else { return nil }
        let significant = digits.drop { $0 == 0x30 }
        guard significant.count < 128 else { return nil }
        return [UInt8(significant.count)] + significant
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == UInt8(ascii: "-")
    }
}
