import CarillonBasics

/// An audience update for the device. The client stores the update, then acknowledges it, and reports a result after processing.
package struct UpdateFrame: Equatable, Sendable {
    /// The envelope's identifier.
    package var version: String
    /// The number of deliveries to the device, from 1. Zero withdraws the update: the client must not process it any more.
    package var attempt: Int
    /// The number of the device's entry into the audience. A device processes an update once for each entry.
    package var entry: Int
    /// The published content as JSON.
    package var body: [UInt8]
    /// For a maintenance with a `from`: the seconds from the writing of the frame until the start, by the server's clock.
    /// Negative if the maintenance has begun.
    package var startsIn: Int?
    /// For a maintenance with an `until`: the seconds until the end, likewise.
    package var endsIn: Int?

    package init(
        version: String, attempt: Int, entry: Int, body: [UInt8], startsIn: Int? = nil, endsIn: Int? = nil
    ) {
        self.version = version
        self.attempt = attempt
        self.entry = entry
        self.body = body
        self.startsIn = startsIn
        self.endsIn = endsIn
    }

    /// The times of an announced maintenance, in milliseconds since 1970; nil if the update announces no maintenance.
    package var maintenance: (from: Int64?, until: Int64?)? {
        // Most updates announce no maintenance and need no parsing.
        guard attempt > 0, Self.contains(Self.maintenanceName, in: body), let json = JSONValue(parsing: body),
            json["kind"] == .string(UpdateKind.status.name),
            case .status(.maintenance(let from, let until))? = try? UpdatePayload(json["payload"], of: .status)
        else { return nil }
        return (from, until)
    }

    /// Returns the frame for sending at a moment, with the relative times of a maintenance.
    ///
    /// - Parameter now: The server's time, in milliseconds since 1970.
    package func written(at now: Int64) -> UpdateFrame {
        guard let (from, until) = maintenance else { return self }
        var frame = self
        frame.startsIn = from.map { Self.seconds(from: now, to: $0) }
        frame.endsIn = until.map { Self.seconds(from: now, to: $0) }
        return frame
    }

    /// Returns the difference in seconds, rounded to the nearest.
    private static func seconds(from now: Int64, to moment: Int64) -> Int {
        let difference = moment - now
        return Int((difference + (difference < 0 ? -500 : 500)) / 1000)
    }

    private static let maintenanceName = Array("maintenance".utf8)

    private static func contains(_ name: [UInt8], in body: [UInt8]) -> Bool {
        guard let first = name.first else { return true }
        var rest = body[...]
        while let place = rest.firstIndex(of: first) {
            rest = rest[place...]
            if rest.starts(with: name) { return true }
            rest = rest.dropFirst()
        }
        return false
    }
}

extension ServerFrame {
    /// Returns the frame for sending at a moment.
    ///
    /// - Parameter now: The server's time, in milliseconds since 1970.
    package func written(at now: Int64) -> ServerFrame {
        if case .update(let update) = self { .update(update.written(at: now)) } else { self }
    }
}
