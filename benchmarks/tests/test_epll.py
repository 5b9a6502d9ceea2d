"""Denoising by expected patch log-likelihood, against sums written out."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

SIDE = 3


@pytest.fixture
def mixture():
    """Weights and covariances of three kinds of patches of 3 × 3 less their mean."""
    rng = np.random.default_rng(0)
    level = np.eye(9) - 1.0 / 9.0
    covariances = []
    for scale in (0.3, 0.1, 0.01):
        B = scale * rng.standard_normal((9, 9))
        covariances.append(level @ B @ B.T @ level)
    return np.array([0.5, 0.3, 0.2]), np.array(covariances)


@pytest.fixture
def picture():
    """A ramp with a bright corner, and its noisy copy."""
    clean = np.add.outer(np.linspace(0.2, 0.6, 11), np.linspace(0.0, 0.2, 8))
    clean[:5, :4] += 0.2
    return clean, clean + 0.1 * np.random.default_rng(1).standard_normal(clean.shape)


def by_hand(noisy, weights, covariances, sigma, betas):
    """Each patch by itself, with the densities of its noisy mixture."""
    x, (height, width) = noisy, noisy.shape
    level = np.eye(9) - 1.0 / 9.0
    basis = np.linalg.eigh(level)[1][:, 1:].T
    for beta in betas:
        noise = sigma**2 / beta
        sums, counts = np.zeros(noisy.shape), np.zeros(noisy.shape)
        for i in range(height - SIDE + 1):
            for j in range(width - SIDE + 1):
                patch = x[i : i + SIDE, j : j + SIDE].ravel()
                y = basis @ patch
                inner = [basis @ C @ basis.T for C in covariances]
                logs = [
                    np.log(w) + multivariate_normal(cov=C + noise * np.eye(8)).logpdf(y)
                    for w, C in zip(weights, inner, strict=True)
                ]
                C = inner[int(np.argmax(logs))]
                clean = C @ np.linalg.solve(C + noise * np.eye(8), y)
                clean = patch.mean() + basis.T @ clean
                sums[i : i + SIDE, j : j + SIDE] += clean.reshape(SIDE, SIDE)
                counts[i : i + SIDE, j : j + SIDE] += 1
        # The minimum over x of counts (x - y)² / σ² + β Σ (x - z)² / σ².
        x = (counts * noisy + beta * sums) / (counts * (1 + beta))
    return np.clip(x, 0.0, 1.0)


def test_denoising_is_half_quadratic_splitting_written_out(mixture, picture):
    from epll import PatchPrior, denoise

    _, noisy = picture
    betas = (1.0, 4.0, 16.0)
    expected = by_hand(noisy, *mixture, 0.1, betas)
    prior = PatchPrior.of(*mixture)
    exact = denoise(noisy, prior, 0.1, betas, smallest=0.0)
    np.testing.assert_allclose(exact, expected, atol=1e-5)
    # Leaving out what is small beside the noise changes little.
    assert np.sqrt(np.mean((denoise(noisy, prior, 0.1, betas) - expected) ** 2)) < 0.005


def test_the_likeliest_component_is_exact_with_all_directions(mixture):
    from epll import PatchPrior, likeliest

    weights, covariances = mixture
    rng, noise = np.random.default_rng(2), 0.02
    patches = np.hstack(
        [
            rng.multivariate_normal(np.zeros(9), C + noise * np.eye(9), 200).T
            for C in covariances
        ]
    )
    patches -= patches.mean(axis=0)
    logs = [
        np.log(w) + multivariate_normal(cov=C + noise * np.eye(9)).logpdf(patches.T)
        for w, C in zip(weights, covariances, strict=True)
    ]
    # The constant patch has the same density in all components: nothing but noise.
    expected = np.argmax(logs, axis=0)
    filters = PatchPrior.of(weights, covariances).filters(noise, smallest=0.0)
    assert len(np.unique(expected)) == 3
    np.testing.assert_array_equal(
        likeliest(patches.astype(np.float32), filters), expected
    )


def test_a_picture_is_the_mean_of_its_own_patches(picture):
    from epll import averaged, patches_of

    clean, _ = picture
    patches = patches_of(clean, SIDE)
    assert patches.shape == (9, 9 * 6)
    np.testing.assert_allclose(patches[:, 1], clean[:3, 1:4].ravel(), rtol=1e-6)
    np.testing.assert_allclose(averaged(patches, clean.shape, SIDE), clean, rtol=1e-6)


def test_denoising_takes_noise_off(mixture, picture):
    from epll import PatchPrior, denoise, psnr

    clean, noisy = picture
    restored = denoise(noisy, PatchPrior.of(*mixture), 0.1)
    assert psnr(restored, clean) > psnr(noisy, clean) + 1.0
    assert psnr(clean + 0.1, clean) == pytest.approx(20.0)
