import Crypto
import Foundation
import NIOCore

/// Measures the search for providers of a service among very many devices. Each device finds the other devices of its user,
/// in two apps.
struct ServiceDiscoveryMeasurement: Sendable {
    let scale: Scale
    let setup: CarillonSetup

    struct Result: Sendable {
        var median: Double
        var ninetyNinth: Double
    }

    private static let data = "service-discovery"
    /// Three devices of one app, and two of the other.
    private static let devicesEach = 5
    private var userCount: Int { scale.serviceProviders / Self.devicesEach }
    private var warmUp: Int { scale.serviceSearches / 10 }

    func measure() async throws -> Result {
        let realm = try await ServiceRealm(setup, data: Self.data)
        defer { realm.remove() }
        let credentials = try await fill()
        return try await realm.serving { server in try await search(server, credentials) }
    }

    // MARK: The devices

    /// Writes the devices into the database. Returns the credentials of some devices, each of a different user.
    private func fill() async throws -> [String] {
        let places = ["/usr/bin/sqlite3", "/usr/local/bin/sqlite3"]
        guard let sqlite = places.first(where: FileManager.default.isExecutableFile) else {
            throw NotMeasured("not installed (sqlite3)")
        }
        var users: Set<Int> = []
        while users.count < warmUp + scale.serviceSearches { users.insert(Int.random(in: 0..<userCount)) }
        var statements = insertions
        let credentials = users.shuffled().map { user in
            let id = Data.chance(16).hexadecimal
            let credential = "\(id).\(Data.chance(24).base64URL)"
            let hash = Data(SHA256.hash(data: Data(credential.utf8))).hexadecimal
            // The devices are numbered from 1.
            let device = user + userCount * Int.random(in: 0..<Self.devicesEach) + 1
            statements += "UPDATE device SET id = x'\(id)', credential_hash = x'\(hash)' WHERE serial = \(device);\n"
            return credential
        }
        let file = setup.scratch.file("\(Self.data).sql")
        try (statements + "COMMIT;\n").write(toFile: file, atomically: true, encoding: .utf8)
        defer { setup.scratch.remove("\(Self.data).sql") }
        _ = try await ServerProcess.output(
            sqlite, ["-bail", setup.scratch.file(Self.data) + "/carillon.sqlite", ".read \(file)"],
            log: setup.scratch.file("\(Self.data)-sqlite.log"))
        return credentials
    }

    /// The devices of a user are far from each other in the table, because they are registered at different times in
    /// practice.
    private var insertions: String {
        let now = Int64(Date.now.timeIntervalSince1970 * 1000)
        let apps = (ServiceRealm.consumerApp, ServiceRealm.providerApp)
        return """
            PRAGMA synchronous = OFF;
            BEGIN;
            CREATE TEMP TABLE made AS
                WITH RECURSIVE counted (number) AS
                    (SELECT 0 UNION ALL SELECT number + 1 FROM counted WHERE number + 1 < \(userCount * Self.devicesEach))
                SELECT number + 1 AS device, 'user ' || (number % \(userCount)) AS user,
                    (SELECT serial FROM app WHERE id = iif(number / \(userCount) < 3, '\(apps.0)', '\(apps.1)')) AS app
                FROM counted;
            INSERT INTO device (serial, id, app, credential_hash, created_at, seen_at)
                SELECT device, randomblob(16), app, randomblob(32), \(now), \(now) FROM made;
            DELETE FROM counter WHERE name = 'devices';
            INSERT INTO counter (app, name, home, value) SELECT app, 'devices', 1, count(*) FROM device GROUP BY app;
            INSERT INTO device_profile (device, app, revision, confirmed_at, takings, taken_on, status_at, user)
                SELECT device, app, 0, \(now), 0, 0, \(now), user FROM made;
            INSERT INTO service_provider (device, name, version, keys)
                SELECT device, 'Bench', '1.0', '\(ServiceKey(0).bundle)' FROM made;
            INSERT INTO service_offer (device, service, version)
                SELECT device, '\(ServicePair.service)', '1.0' FROM made;

            """
    }

    // MARK: Searching

    /// `@unchecked Sendable`: it is used only on ``LoadLoop`` until the pump is done.
    private final class Times: @unchecked Sendable {
        var beganAt: UInt64 = 0
        var milliseconds: [Double] = []
    }

    /// Sends the searches one after the other, on one connection.
    private func search(_ server: CarillonUnderTest, _ credentials: [String]) async throws -> Result {
        let (address, times) = (server.address, Times())
        let questions = credentials.map { credential in
            HTTPRequest.bytes(
                "GET", "/v1/services?service=\(ServicePair.service)", headers: ["Authorization: Bearer \(credential)"])
        }
        try await LoadLoop.run {
            HTTPConnection.open(1, address).flatMap { connections in
                RequestPump.run(questions.count, over: connections) { index in
                    times.beganAt = nanoseconds()
                    return questions[index]
                } check: { _, answer in
                    times.milliseconds.append(Double(nanoseconds() - times.beganAt) / 1e6)
                    return answer.status == 200 && Self.providerCount(answer.body) == Self.devicesEach - 1
                }.always { _ in for connection in connections { connection.close() } }
            }
        }
        let sorted = times.milliseconds.dropFirst(warmUp).sorted()
        return Result(median: sorted[sorted.count / 2], ninetyNinth: sorted[sorted.count * 99 / 100])
    }

    private static func providerCount(_ body: ByteBuffer) -> Int {
        var (count, place) = (0, 0)
        while let found = body.offset(of: "\"live\":", from: place) {
            count += 1
            place = found + 1
        }
        return count
    }
}
