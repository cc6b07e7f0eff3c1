import Foundation
import NIOCore

/// Measures the upload and download of one large file by curl, with Carillon and with nginx (DAV and static files), and the
/// speed at which the client seals a file.
struct AttachmentMeasurement: Sendable {
    let setup: CarillonSetup

    struct Result: Sendable {
        var upload: Double
        var download: Double
    }

    static let mebibytes = 512
    private static let data = "attachments"
    private static let file = "attachment"
    private static let curl = "/usr/bin/curl"
    private static let nginx = "/usr/sbin/nginx"

    private var scratch: ScratchDirectory { setup.scratch }

    /// A file that cannot be compressed.
    func makeFile() async throws {
        _ = try await ServerProcess.output(
            "/bin/sh", ["-c", "head -c \(Self.mebibytes)M /dev/urandom > \(scratch.file(Self.file)) && sync"],
            log: scratch.file("file.log"))
    }

    // MARK: Carillon

    func measureCarillon() async throws -> Result {
        defer { scratch.remove(Self.data) }
        let devices = try await setup.register(1, data: Self.data)
        let server = try setup.launch(data: Self.data, devices: devices, settings: [:])
        try await setup.waitUntilReady(server)
        do {
            let bearer = "Authorization: Bearer \(devices[0].credential)"
            let base = "http://127.0.0.1:\(server.address.port ?? 0)"
            let upload = try await time([
                "-X", "POST", "-T", scratch.file(Self.file), "-H", bearer, "-D", scratch.file("attachment-head"),
                "\(base)/v1/attachments?readers=\(devices[0].id)",
            ])
            let head = try String(contentsOfFile: scratch.file("attachment-head"), encoding: .utf8)
            let location = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("location: ") }?.dropFirst(10)
            guard let location else { throw NotMeasured("Carillon did not take the attachment: \(head.prefix(200))") }
            let download = try await time(["-H", bearer, "-o", "/dev/null", String(location)])
            await server.process.stop()
            return Result(upload: upload, download: download)
        } catch {
            await server.process.stop()
            throw error
        }
    }

    /// Returns the speed in MiB per second.
    private func time(_ arguments: [String]) async throws -> Double {
        let start = ContinuousClock.now
        _ = try await ServerProcess.output(Self.curl, ["-sSf", "-H", "Expect:"] + arguments, log: scratch.file("curl.log"))
        return Double(Self.mebibytes) / ((ContinuousClock.now - start) / .seconds(1))
    }

    // MARK: nginx

    func measureNginx() async throws -> Result {
        guard FileManager.default.isExecutableFile(atPath: Self.nginx) else {
            throw NotMeasured("not installed (nginx-light)")
        }
        let port = try freePort()
        let configuration = scratch.file("dav.conf")
        let files = scratch.file("dav")
        try FileManager.default.createDirectory(atPath: files + "/body", withIntermediateDirectories: true)
        defer { scratch.remove("dav") }
        try """
        daemon off; user root; worker_processes 2; pid \(scratch.file("dav.pid")); error_log \(scratch.file("dav-error.log"));
        events {}
        http {
            access_log off; sendfile on; client_body_temp_path \(files)/body; proxy_temp_path \(files)/p;
            fastcgi_temp_path \(files)/f; uwsgi_temp_path \(files)/u; scgi_temp_path \(files)/s;
            server { listen 127.0.0.1:\(port); root \(files); dav_methods PUT; client_max_body_size 0; }
        }
        """.write(toFile: configuration, atomically: true, encoding: .utf8)
        let process = try ServerProcess.start(
            Self.nginx, ["-p", scratch.path, "-c", configuration], log: scratch.file("dav.log"))
        do {
            try await Task.sleep(for: .milliseconds(500))
            // nginx leaves the write to disk to the kernel, so the file is synced as Carillon's is.
            let url = "http://127.0.0.1:\(port)/file"
            let start = ContinuousClock.now
            _ = try await ServerProcess.output(
                "/bin/sh",
                [
                    "-c",
                    "\(Self.curl) -sSf -H Expect: -T \(scratch.file(Self.file)) \(url) && sync \(files)/file && sync \(files)",
                ],
                log: scratch.file("curl.log"))
            let upload = Double(Self.mebibytes) / ((ContinuousClock.now - start) / .seconds(1))
            let download = try await time(["-o", "/dev/null", url])
            await process.stop(SIGQUIT)
            return Result(upload: upload, download: download)
        } catch {
            await process.stop()
            throw error
        }
    }

    // MARK: The client

    /// Returns the speed of sealing in MB per second, until the sealed copy is complete. The file is read from memory and the
    /// copy is written to memory.
    func measureSealing() async throws -> Double {
        let memory = "/dev/shm/carillon-bench-\(getpid())"
        try FileManager.default.createDirectory(atPath: memory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: memory) }
        try FileManager.default.copyItem(atPath: scratch.file(Self.file), toPath: memory + "/file")
        let process = try ServerProcess.start(
            setup.executable,
            [
                "attachments", "put", memory + "/file", "--for", "senders", "--state", memory + "/state", "--server",
                "http://127.0.0.1:1", "--key", "none",
            ], log: scratch.file("put.log"))
        var begin: ContinuousClock.Instant?
        while true {
            let names = (try? FileManager.default.contentsOfDirectory(atPath: memory + "/state")) ?? []
            if begin == nil, names.contains(where: { $0.hasSuffix(".sealed") }) { begin = .now }
            if let begin, names.contains(where: { $0.hasSuffix(".upload") }) {
                let seconds = (ContinuousClock.now - begin) / .seconds(1)
                await process.stop(SIGKILL)
                return Double(Self.mebibytes) * 1.048576 / seconds
            }
            guard !process.hasEnded else { throw NotMeasured("the client ended: \(process.printed.suffix(200))") }
            try await Task.sleep(for: .milliseconds(1))
        }
    }
}
