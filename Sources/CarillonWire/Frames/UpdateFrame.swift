import CarillonBasics

/// An update for the device: to be acknowledged when it is kept, and to be reported on when it is processed.
package struct UpdateFrame: Equatable, Sendable {
    /// The envelope's identifier.
    package var version: String
    /// How often the device was given it, from one on; zero: it was taken back, and is not to be processed any more.
    package var attempt: Int
    /// Which entry into the audience it is for: what an update does is done once for each.
    package var entry: Int
    /// JSON: what was published.
    package var body: [UInt8]
    /// Of a maintenance with a `from`: the seconds until then by the server's clock, from when the frame was written; negative when it has
    /// begun.
    package var startsIn: Int?
    /// The same of its `until`.
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

    /// The times of the maintenance that it announces, in milliseconds since 1970; nil where it announces none.
    package var maintenance: (from: Int64?, until: Int64?)? {
        // Most say nothing of the kind, and are not parsed.
        guard attempt > 0, Self.contains(Self.maintenanceName, in: body), let json = JSONValue(parsing: body),
            json["kind"] == .string(UpdateKind.status.name),
            case .status(.maintenance(let from, let until))? = try? UpdatePayload(json["payload"], of: .status)
        else { return nil }
        return (from, until)
    }

    /// The frame as it is written at a moment: what it says of a maintenance depends on that.
    ///
    /// - Parameter now: By the server's clock, in milliseconds since 1970.
    package func written(at now: Int64) -> UpdateFrame {
        guard let (from, until) = maintenance else { return self }
        var frame = self
        frame.startsIn = from.map { Self.seconds(from: now, to: $0) }
        frame.endsIn = until.map { Self.seconds(from: now, to: $0) }
        return frame
    }

    /// To the nearest.
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
    /// The frame as it is written at a moment.
    ///
    /// - Parameter now: By the server's clock, in milliseconds since 1970.
    package func written(at now: Int64) -> ServerFrame {
        if case .update(let update) = self { .update(update.written(at: now)) } else { self }
    }
}
