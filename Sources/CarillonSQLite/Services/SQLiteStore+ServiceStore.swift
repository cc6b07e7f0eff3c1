package import CarillonCore
package import CarillonWire
import GRDB

extension SQLiteStore: ServiceStore {
    // MARK: Providers

    package func putServiceProfile(_ profile: ServiceProvider.Profile, of device: DeviceSerial) async throws -> Bool? {
        try await group.run { db in try ProviderTable(db).put(profile, of: device) }
    }

    package func removeServiceProfile(of device: DeviceSerial) async throws -> Bool {
        try await group.run { db in try ProviderTable(db).remove(device) }
    }

    package func serviceProviders(
        for caller: DeviceSerial, _ query: ServiceQuery, limit: Int
    ) async throws -> ServiceReach? {
        try await read { db in try ProviderTable(db).reach(of: caller, query, limit: limit) }
    }

    package func serviceIcon(of provider: DeviceSerial) async throws -> ServiceIcon? {
        try await read { db in try ProviderTable(db).icon(of: provider) }
    }

    package func servicePeers(of provider: DeviceSerial, limit: Int) async throws -> [DeviceSerial] {
        try await read { db in try ProviderTable(db).peers(of: provider, limit: limit) }
    }

    package func setClusterPlace(_ place: ClusterPlace?, of device: DeviceID, app: AppSerial) async throws -> Bool? {
        try await group.run { [registry, memory] db -> Bool? in
            let isSet = try ProviderTable(db).setPlace(place, of: device, app: app)
            guard isSet == true else { return isSet }
            try registry.increment(in: db)
            guard place == nil else { return true }
            let select = "SELECT serial FROM device WHERE id = ?"
            if let server = try Int64.first(db, select, [device.value.data]).map(DeviceSerial.init) {
                let changes = RequestRules().end(of: server, because: .serverRemoved)
                try RequestTable(db, memory: memory.requests).write(changes)
            }
            return true
        }
    }

    package func cluster(of app: AppSerial) async throws -> [(device: DeviceID, place: ClusterPlace)] {
        try await read { db in try ProviderTable(db).cluster(of: app) }
    }

    // MARK: Requests

    package func serviceRequest(_ id: ServiceRequestID) async throws -> ServiceRequest? {
        try gate.check()
        if let request = memory.requests.committed(id) { return request }
        return try await read { db in try RequestReader(db).request(id) }
    }

    package func requestBeginning(
        _ id: ServiceRequestID, by caller: DeviceSerial, to provider: DeviceID, of app: AppID
    ) async throws -> RequestBeginning {
        try await read { db in
            try ProviderTable(db).requestBeginning(id, by: caller, ServiceQuery(app: app, device: provider))
        }
    }

    package func unfinishedRequestCount(of consumer: DeviceSerial) async throws -> Int {
        try await read { db in try RequestReader(db).unfinishedCount(of: consumer) }
    }

    package func unfinishedRequests(
        of consumer: DeviceSerial, to provider: DeviceSerial, limit: Int
    ) async throws -> [ServiceRequest] {
        try await read { db in try RequestReader(db).unfinished(of: consumer, to: provider, limit: limit) }
    }

    package func cancelRequest(_ request: RequestSerial, at now: Timestamp) async throws -> Bool {
        try await group.run { [memory] db in
            let table = RequestTable(db, memory: memory.requests)
            let facts = try table.facts(toCancel: request)
            guard let changes = RequestRules().cancel(request, at: now, knowing: facts) else { return false }
            try table.write(changes)
            return true
        }
    }

    package func dueRequests(in shards: ShardSet, at now: Timestamp, limit: Int) async throws -> [ServiceRequest] {
        try await read { db in try RequestReader(db).due(in: shards, at: now, limit: limit) }
    }

    package func forgetRequests(in shards: ShardSet, by retention: RetentionTime, limit: Int) async throws -> Int {
        try await group.run { [memory] db in
            let cutoff = RequestRules().cutoff(by: retention)
            return try RequestTable(db, memory: memory.requests).forget(in: shards, by: cutoff, limit: limit)
        }
    }
}
